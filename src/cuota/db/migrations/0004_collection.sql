-- Installments are collected automatically, and consumers get messages about it.

ALTER TABLE installments
    ADD COLUMN charge_at timestamptz,               -- when a card is charged next; null: paid, or another card is needed
    ADD COLUMN remind_at timestamptz,               -- when the consumer is reminded next
    ADD COLUMN failures  smallint NOT NULL DEFAULT 0 CHECK (failures >= 0),
    ADD CONSTRAINT paid_is_not_charged CHECK (charge_id IS NULL OR (charge_at IS NULL AND remind_at IS NULL));

ALTER TABLE orders
    ADD COLUMN collect_at timestamptz,              -- the earliest time of its plan
    DROP CONSTRAINT charging_while_created,         -- the previous release charges only open orders, so it needs no such check
    ADD CONSTRAINT charging_while_open CHECK (charging IS NULL OR status IN ('Created', 'Approved'));

-- Money that a card network did not accept back. An operator must see it, and pay it in another way.
CREATE INDEX card_refunds_failed ON card_refunds (created_at) WHERE state = 'failed';

-- Who started the charge. Only a scheduled charge is retried automatically after a failure.
ALTER TABLE charges
    ADD COLUMN origin text NOT NULL DEFAULT 'checkout' CHECK (origin IN ('checkout', 'schedule', 'consumer'));

-- The card for all later payments, if the consumer has changed the card.
ALTER TABLE plans
    ADD COLUMN card_token text,
    ADD COLUMN card_brand text,
    ADD COLUMN card_last4 text CHECK (card_last4 ~ '^[0-9]{4}$');
CREATE INDEX plans_consumer ON plans (consumer_id, agreed_at DESC);

-- Plans that were agreed before this release.
UPDATE installments i SET charge_at = i.due_on::timestamp AT TIME ZONE p.time_zone,
        remind_at = (i.due_on - 3 + time '10:00') AT TIME ZONE p.time_zone
    FROM plans p WHERE p.merchant_id = i.merchant_id AND p.order_id = i.order_id AND i.charge_id IS NULL;
UPDATE orders o SET collect_at = due.at, due_at = least(o.due_at, due.at) FROM (
    SELECT merchant_id, order_id, min(least(charge_at, remind_at)) AS at FROM installments
    WHERE charge_id IS NULL AND amount + fee > 0 GROUP BY merchant_id, order_id
) due WHERE o.merchant_id = due.merchant_id AND o.order_id = due.order_id AND o.status = 'Approved';

-- Messages to consumers: written with the change that they report, sent by the worker. No personal data in them.
CREATE TABLE messages (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    message_id  uuid NOT NULL,                      -- the rail's idempotency key
    kind        text NOT NULL CHECK (kind IN (
        'plan_started', 'reminder', 'payment_received', 'payment_failed', 'card_needed', 'card_changed')),
    installment smallint NOT NULL CHECK (installment BETWEEN 1 AND 4),
    amount      bigint NOT NULL CHECK (amount > 0),
    day         date NOT NULL,
    state       text NOT NULL CHECK (state IN ('pending', 'sent', 'failed')),
    reason      text,
    created_at  timestamptz NOT NULL,
    try_at      timestamptz,                        -- when the rail is called next; null once it is settled
    tries       smallint NOT NULL DEFAULT 0,
    settled_at  timestamptz,
    PRIMARY KEY (merchant_id, order_id, message_id),
    CONSTRAINT pending_has_a_time CHECK ((state = 'pending') = (try_at IS NOT NULL))
);
CREATE INDEX messages_due ON messages (try_at, merchant_id) WHERE try_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE ON messages TO cuota_app;

-- One more test card: reported as lost after its first payment, to test a permanent decline.
ALTER TABLE card_simulator.cards
    DROP CONSTRAINT cards_behaviour_check,          -- widened, so that rows of the previous release still pass
    ADD CONSTRAINT cards_behaviour_check
        CHECK (behaviour IN ('pays', 'declined', 'no_funds', 'pays_once', 'disputed', 'lost_later'));

-- One browser on the consumer's account page. Secrets are keyed hashes, as in the checkout.
CREATE TABLE account_sessions (
    session_hash bytea PRIMARY KEY,
    phone        text,
    code_hash    bytea,
    code_ends_at timestamptz,
    code_tries   smallint NOT NULL DEFAULT 0,
    codes_sent   smallint NOT NULL DEFAULT 0,
    consumer_id  uuid,                              -- set once the number was proved
    created_at   timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL
);
CREATE INDEX account_sessions_old ON account_sessions (ends_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON account_sessions TO cuota_app;
