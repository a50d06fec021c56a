-- Plans are collected by themselves, and consumers are told.

ALTER TABLE installments
    ADD COLUMN charge_at timestamptz,               -- when a card is asked next; null: paid, or another card is needed
    ADD COLUMN remind_at timestamptz,               -- when the consumer is reminded next
    ADD COLUMN failures  smallint NOT NULL DEFAULT 0 CHECK (failures >= 0),
    ADD CONSTRAINT paid_is_not_charged CHECK (charge_id IS NULL OR (charge_at IS NULL AND remind_at IS NULL));

ALTER TABLE orders
    ADD COLUMN collect_at timestamptz,              -- the earliest of its plan's
    DROP CONSTRAINT charging_while_created,         -- the previous release charges none but open orders: it misses nothing
    ADD CONSTRAINT charging_while_open CHECK (charging IS NULL OR status IN ('Created', 'Approved'));

-- Money that a card network would not take back: an operator must see it, and pay it another way.
CREATE INDEX card_refunds_failed ON card_refunds (created_at) WHERE state = 'failed';

-- Who asked for it: only a scheduled charge that fails is tried again by itself.
ALTER TABLE charges
    ADD COLUMN origin text NOT NULL DEFAULT 'checkout' CHECK (origin IN ('checkout', 'schedule', 'consumer'));

-- The card that pays from now on, once the consumer has given another than the one that paid last.
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

-- What consumers are told: written with what it tells of, sent by the worker. No name, number or address in it.
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
    try_at      timestamptz,                        -- when the rail is asked next; null once settled
    tries       smallint NOT NULL DEFAULT 0,
    settled_at  timestamptz,
    PRIMARY KEY (merchant_id, order_id, message_id),
    CONSTRAINT pending_has_a_time CHECK ((state = 'pending') = (try_at IS NOT NULL))
);
CREATE INDEX messages_due ON messages (try_at, merchant_id) WHERE try_at IS NOT NULL;
GRANT SELECT, INSERT, UPDATE ON messages TO cuota_app;

-- One more test card: reported lost after its first payment, so that a hard decline can be tried.
ALTER TABLE card_simulator.cards
    DROP CONSTRAINT cards_behaviour_check,          -- widened: what the previous release writes still passes
    ADD CONSTRAINT cards_behaviour_check
        CHECK (behaviour IN ('pays', 'declined', 'no_funds', 'pays_once', 'disputed', 'lost_later'));

-- One browser on the consumer's own page. Secrets are keyed hashes, as in the checkout.
CREATE TABLE account_sessions (
    session_hash bytea PRIMARY KEY,
    phone        text,
    code_hash    bytea,
    code_ends_at timestamptz,
    code_tries   smallint NOT NULL DEFAULT 0,
    codes_sent   smallint NOT NULL DEFAULT 0,
    consumer_id  uuid,                              -- once the number was proved
    created_at   timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL
);
CREATE INDEX account_sessions_old ON account_sessions (ends_at);
GRANT SELECT, INSERT, UPDATE, DELETE ON account_sessions TO cuota_app;
