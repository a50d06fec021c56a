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

-- The erased consumers whom a card processor has not deleted yet. A background job tries again until it has.
CREATE TABLE card_erasures (
    rail        text NOT NULL,
    consumer_id uuid NOT NULL,
    erased_at   timestamptz NOT NULL,
    try_at      timestamptz NOT NULL,               -- by the real clock; a claim sets it to the end of its lease
    tries       smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (rail, consumer_id)
);
GRANT SELECT, INSERT, UPDATE, DELETE ON card_erasures TO cuota_app;

-- Customers of erased consumers, until they are deleted at Stripe. The same person may have a new customer meanwhile.
CREATE TABLE card_processor.erased_customers (
    customer    text NOT NULL,
    account     text NOT NULL,
    consumer_id uuid NOT NULL,
    PRIMARY KEY (customer, account)
);
CREATE INDEX erased_customers_consumer ON card_processor.erased_customers (consumer_id);
GRANT SELECT, INSERT, DELETE ON card_processor.erased_customers TO cuota_app;

-- The sandbox's processor knows whose card it keeps, so that it can forget the cards of an erased consumer.
ALTER TABLE card_simulator.cards
    ADD COLUMN consumer_id uuid,
    ADD COLUMN forgotten boolean NOT NULL DEFAULT false;
CREATE INDEX cards_consumer ON card_simulator.cards (consumer_id);
GRANT UPDATE ON card_simulator.cards TO cuota_app;

-- When the newest event happened that was fetched from a processor, by the processor's clock.
ALTER TABLE card_rails
    ADD COLUMN newest_event_at timestamptz;
