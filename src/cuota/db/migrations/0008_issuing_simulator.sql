-- Virtual cards: which order has one, and to which browser it was shown. The number itself is the issuer's to keep.
CREATE TABLE virtual_cards (
    merchant_id  uuid NOT NULL,
    order_id     uuid NOT NULL,
    key          uuid NOT NULL,                     -- the issuing rail's idempotency key
    session_hash bytea NOT NULL,                    -- the one browser that may see it
    issued_at    timestamptz,
    revealed_at  timestamptz,                       -- real time: from here on the minutes are counted
    hide_at      timestamptz,                       -- real time; null once the issuer was told to hide it for good
    changes      integer NOT NULL DEFAULT 0,        -- rises with every void, so that none is missed
    tell_at      timestamptz,                       -- when the issuer is told the new limit; null: it knows
    tries        smallint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, order_id)
);
CREATE INDEX virtual_cards_tell ON virtual_cards (tell_at, merchant_id) WHERE tell_at IS NOT NULL;
CREATE INDEX virtual_cards_hide ON virtual_cards (hide_at, merchant_id) WHERE hide_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE ON virtual_cards TO cuota_app;

-- Whatever voids an order, by a call or at the authorization's end, its card must not pay for any more.
CREATE FUNCTION card_limit_falls() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE virtual_cards v SET changes = v.changes + 1, tell_at = '-infinity', tries = 0
        WHERE v.merchant_id = NEW.merchant_id AND v.order_id = NEW.order_id;
    RETURN NULL;
END $$;
CREATE TRIGGER card_limit_falls AFTER UPDATE ON orders FOR EACH ROW
    WHEN (NEW.voided <> OLD.voided) EXECUTE FUNCTION card_limit_falls();

-- The browser that pressed the button, by the keyed hash of its session: it alone may see the card.
ALTER TABLE plans ADD COLUMN browser bytea;

-- The sandbox's issuer and its card network. They stand for companies outside: books of their own, which commit
-- apart from ours. Nothing readable: the number is sealed until it has been shown, then only keyed hashes are left.
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
