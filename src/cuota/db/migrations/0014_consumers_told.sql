-- Consumers are told when their money moves: a refund, a void, the end of an authorization, a plan that is paid off.

ALTER TABLE messages
    DROP CONSTRAINT messages_kind_check,            -- widened: what the previous release writes still passes
    ADD CONSTRAINT messages_kind_check CHECK (kind IN (
        'plan_started', 'reminder', 'payment_received', 'payment_failed', 'card_needed', 'card_changed', 'declined',
        'plan_paid_off', 'refunded', 'voided', 'expired')),
    ADD COLUMN standing json;                       -- what is left to pay, and what goes back to which charge's card

-- Charges and card changes that consumers asked for, by keyed hashes: each row's times, at most a few for each day.
CREATE TABLE consumer_asks (
    subject    text NOT NULL CHECK (subject IN ('plan', 'phone', 'card', 'network')),
    value_hash bytea NOT NULL,
    asked      timestamptz[] NOT NULL,
    paid       timestamptz[] NOT NULL DEFAULT '{}', -- those that a card paid: no velocity
    last_at    timestamptz NOT NULL,
    PRIMARY KEY (subject, value_hash)
);
CREATE INDEX consumer_asks_old ON consumer_asks (last_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON consumer_asks TO cuota_app;

-- The keyed hash of the card that pays the plan, as signals have it; null where the card rail knows cards by none.
ALTER TABLE plans ADD COLUMN card_hash bytea;

-- The limit that a count was last held against: a full one is not counted on. Null: written by the previous release.
ALTER TABLE codes_sent ADD COLUMN most integer;

-- Browsers in which an order was approved, and whose consumer they know again. Keyed hash of what the browser holds.
CREATE TABLE remembered_browsers (
    token_hash  bytea PRIMARY KEY,
    consumer_id uuid NOT NULL,
    merchant_id uuid NOT NULL,                      -- the plan that was agreed to there last: its card is offered
    order_id    uuid NOT NULL,
    created_at  timestamptz NOT NULL,
    ends_at     timestamptz NOT NULL
);
CREATE INDEX remembered_browsers_consumer ON remembered_browsers (consumer_id);
CREATE INDEX remembered_browsers_old ON remembered_browsers (ends_at);
GRANT SELECT, INSERT, DELETE ON remembered_browsers TO cuota_app;

-- Numbers whose owner answered STOP or START to a text, by keyed hash.
CREATE TABLE text_choices (
    phone_hash bytea PRIMARY KEY,
    stopped    boolean NOT NULL,
    said_at    timestamptz NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON text_choices TO cuota_app;
