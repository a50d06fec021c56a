-- Virtual cards: which order has one, and which browser may see it. Only the issuer stores the card number.
CREATE TABLE virtual_cards (
    merchant_id  uuid NOT NULL,
    order_id     uuid NOT NULL,
    key          uuid NOT NULL,                     -- the issuing rail's idempotency key
    session_hash bytea NOT NULL,                    -- the one browser that may see it
    issued_at    timestamptz,
    revealed_at  timestamptz,                       -- real time: the card may be shown for some minutes from here on
    hide_at      timestamptz,                       -- real time; null after the issuer has hidden the card permanently
    changes      integer NOT NULL DEFAULT 0,        -- rises with every void, so that the issuer learns of each one
    tell_at      timestamptz,                       -- when to send the issuer the new limit; null: the issuer has it
    tries        smallint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, order_id)
);
CREATE INDEX virtual_cards_tell ON virtual_cards (tell_at, merchant_id) WHERE tell_at IS NOT NULL;
CREATE INDEX virtual_cards_hide ON virtual_cards (hide_at, merchant_id) WHERE hide_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE ON virtual_cards TO cuota_app;

-- Every void lowers the card's limit: a void by a request, and the void at the end of the authorization.
CREATE FUNCTION card_limit_falls() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE virtual_cards v SET changes = v.changes + 1, tell_at = '-infinity', tries = 0
        WHERE v.merchant_id = NEW.merchant_id AND v.order_id = NEW.order_id;
    RETURN NULL;
END $$;
CREATE TRIGGER card_limit_falls AFTER UPDATE ON orders FOR EACH ROW
    WHEN (NEW.voided <> OLD.voided) EXECUTE FUNCTION card_limit_falls();

-- The keyed hash of the session whose browser pressed the payment button. Only this browser may see the card.
ALTER TABLE plans ADD COLUMN browser bytea;

-- The sandbox's issuer and its card network. They simulate external companies, so they have their own tables and
-- transactions. The number is encrypted until the card is hidden. After that, only keyed hashes are left.
CREATE SCHEMA issuing_simulator;

CREATE TABLE issuing_simulator.cards (
    key           uuid PRIMARY KEY,
    merchant_id   uuid NOT NULL,                    -- the lock: nobody else may charge it
    order_id      uuid NOT NULL,
    sealed        bytea,                            -- number and security code, AES-GCM; null once hidden
    number_hash   bytea NOT NULL UNIQUE,            -- keyed
    details_hash  bytea NOT NULL,                   -- keyed: number, security code and expiry together
    brand         text NOT NULL,
    expires_month smallint NOT NULL CHECK (expires_month BETWEEN 1 AND 12),
    expires_year  smallint NOT NULL,
    currency      char(3) NOT NULL,
    amount        bigint NOT NULL CHECK (amount > 0),
    spend_limit   bigint NOT NULL,                  -- falls with every void of the order
    authorised    bigint NOT NULL DEFAULT 0,
    held          bigint NOT NULL DEFAULT 0,        -- captures and reversals that the order has not taken yet
    captured      bigint NOT NULL DEFAULT 0,
    reversed      bigint NOT NULL DEFAULT 0,
    going_back     bigint NOT NULL DEFAULT 0,        -- refunds that the order has not taken yet
    refunded      bigint NOT NULL DEFAULT 0,
    created_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT none_below_zero CHECK (
        least(spend_limit, authorised, held, captured, reversed, going_back, refunded) >= 0),
    CONSTRAINT limit_within_amount CHECK (spend_limit <= amount),
    CONSTRAINT no_over_authorisation CHECK (authorised <= amount),
    CONSTRAINT no_over_capture CHECK (captured + reversed + held <= authorised AND captured <= spend_limit),
    CONSTRAINT no_over_refund CHECK (refunded + going_back <= captured)
);

CREATE TABLE issuing_simulator.authorizations (
    authorization_id uuid PRIMARY KEY,
    key              uuid NOT NULL REFERENCES issuing_simulator.cards,
    reference        text,                          -- the processor's idempotency key, where it sent one
    amount           bigint NOT NULL CHECK (amount > 0),
    approved         boolean NOT NULL,
    reason           text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    UNIQUE (key, reference),
    CONSTRAINT a_no_has_a_reason CHECK (approved = (reason IS NULL))
);
-- A number is good for one authorization.
CREATE UNIQUE INDEX authorizations_once ON issuing_simulator.authorizations (key) WHERE approved;

-- Captures, reversals and refunds by the card. Pending until the order has taken it; one that the order refuses goes.
CREATE TABLE issuing_simulator.clearings (
    clearing_id      uuid PRIMARY KEY,              -- the movement's id in our books, too
    authorization_id uuid NOT NULL REFERENCES issuing_simulator.authorizations,
    kind             text NOT NULL CHECK (kind IN ('capture', 'reverse', 'refund')),
    reference        text NOT NULL,
    amount           bigint NOT NULL CHECK (amount > 0),
    state            text NOT NULL CHECK (state IN ('pending', 'done')),
    lease            uuid NOT NULL,                 -- who is at it
    try_at           timestamptz,                   -- when somebody else takes over; null once done
    created_at       timestamptz NOT NULL,
    UNIQUE (authorization_id, kind, reference),
    CONSTRAINT pending_has_a_time CHECK ((state = 'pending') = (try_at IS NOT NULL))
);
CREATE INDEX clearings_due ON issuing_simulator.clearings (try_at) WHERE try_at IS NOT NULL;

GRANT USAGE ON SCHEMA issuing_simulator TO cuota_app;
GRANT SELECT, INSERT, UPDATE ON issuing_simulator.cards TO cuota_app;
GRANT SELECT, INSERT ON issuing_simulator.authorizations TO cuota_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON issuing_simulator.clearings TO cuota_app;
