-- Risk decisions: the data for each decision, and the data that the consumer's next decision needs.

-- A decision stores its score and limit too, and has an id. Null: the decision is older than these columns.
ALTER TABLE decisions
    ADD COLUMN decision_id  uuid,
    ADD COLUMN consumer_id  uuid,
    ADD COLUMN score        integer,
    ADD COLUMN credit_limit bigint,                 -- cents: the highest amount that this consumer may owe
    ADD COLUMN inputs_hash  bytea;                  -- SHA-256 of the inputs' text, to detect an altered text
-- Existing rows get an id that is computed from their key, so that every copy of the database has the same ids.
ALTER TABLE decisions DISABLE TRIGGER append_only;
UPDATE decisions d SET
    decision_id = md5(d.merchant_id::text || d.order_id::text || extract(epoch FROM d.decided_at)::text)::uuid,
    consumer_id = (SELECT p.consumer_id FROM plans p WHERE p.merchant_id = d.merchant_id AND p.order_id = d.order_id);
ALTER TABLE decisions ENABLE TRIGGER append_only;
ALTER TABLE decisions
    ALTER COLUMN decision_id SET DEFAULT gen_random_uuid(),  -- what the previous release writes has none
    ALTER COLUMN decision_id SET NOT NULL;
CREATE INDEX decisions_id ON decisions (decision_id);
CREATE INDEX decisions_declined ON decisions (consumer_id, decided_at) WHERE NOT approved;
CREATE INDEX decisions_made ON decisions (merchant_id, decided_at);

-- Every policy that was in force, word for word: from its first decision on a version means one text for good.
CREATE TABLE policies (
    version    text PRIMARY KEY,
    text       text NOT NULL,
    loaded_at  timestamptz NOT NULL DEFAULT now(),  -- real time, as below
    decided_at timestamptz                          -- when it was first about to decide
);
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON policies
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER decided BEFORE UPDATE ON policies
    FOR EACH ROW WHEN (OLD.decided_at IS NOT NULL) EXECUTE FUNCTION append_only();

-- The policy of the service that ran last, and the names in its letters. Commands use the same values. Null: not stored yet.
ALTER TABLE last_served
    ADD COLUMN policy_version text,
    ADD COLUMN creditor       text,
    ADD COLUMN agency         text,
    ADD COLUMN brand_name     text;

-- Models, each fitted to one merchant's data about its customers. A model is used only for this merchant's decisions.
CREATE TABLE models (
    merchant_id uuid NOT NULL,
    version     text NOT NULL,
    document    json NOT NULL,                      -- plain numbers
    report      json NOT NULL,                      -- the result of the trial
    fitted_at   timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, version)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON models
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();

-- Advanced Approvals: only an operator moves it.
ALTER TABLE merchants
    ADD COLUMN approvals       text NOT NULL DEFAULT 'off' CHECK (approvals IN (
        'off',                                      -- what the merchant says of its customers is kept, and not looked at
        'trial',                                    -- recorded with each decision, which it does not change
        'on'                                        -- counts
    )),
    ADD COLUMN approvals_model text,
    ADD CONSTRAINT on_has_a_model CHECK (approvals <> 'on' OR approvals_model IS NOT NULL);

-- Keyed hashes of the phone, card, address and browser of each attempt to pay, to count how often each was seen lately.
CREATE TABLE signals (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('phone', 'card', 'address', 'device')),
    value_hash  bytea NOT NULL,
    at          timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, order_id, kind, value_hash)
);
CREATE INDEX signals_seen ON signals (kind, value_hash, at) INCLUDE (merchant_id, order_id);
CREATE INDEX signals_old ON signals (at);

-- The version rises with each of the consumer's orders for which a card is charged. If two decisions read the same version,
-- only one of them is saved.
CREATE TABLE consumer_exposure (
    consumer_id uuid PRIMARY KEY,
    version     bigint NOT NULL
);

-- The keyed hash of the cookie of the browser that opened this checkout; null in a frame, which has no cookie.
ALTER TABLE checkout_sessions ADD COLUMN device_hash bytea;

-- One more kind of message to consumers: the reasons why an order was declined.
ALTER TABLE messages
    DROP CONSTRAINT messages_kind_check,            -- widened: what the previous release writes still passes
    ADD CONSTRAINT messages_kind_check CHECK (kind IN (
        'plan_started', 'reminder', 'payment_received', 'payment_failed', 'card_needed', 'card_changed', 'declined'));

GRANT SELECT, INSERT ON policies, models TO cuota_app;
GRANT UPDATE (text, loaded_at, decided_at) ON policies TO cuota_app;
GRANT SELECT, INSERT, DELETE ON signals TO cuota_app;
GRANT SELECT, INSERT, UPDATE ON consumer_exposure TO cuota_app;
