-- The declines of each card over all plans of all merchants, because the card networks limit attempts by card. Declines are rare.
-- Both columns are keyed hashes: nobody can tell from a row whose card or which charge it was.
CREATE TABLE card_declines (
    card_hash   bytea NOT NULL,
    charge_hash bytea NOT NULL,                     -- makes recording the same decline again harmless
    at          timestamptz NOT NULL,               -- by the service's clock
    final       boolean NOT NULL,                   -- the card must never be charged again
    PRIMARY KEY (card_hash, charge_hash)
);
CREATE INDEX card_declines_at ON card_declines (at);
GRANT SELECT, INSERT, DELETE ON card_declines TO cuota_app;
