-- The foundation: merchants, orders, plans, movements, the ledger, and what surrounds them.
--
-- Money is bigint cents with the currency beside it. Primary keys begin with merchant_id (consumers' own with
-- consumer_id). So the key itself separates merchants, and tables can be sharded by it. Every index slows writes, so there are few.

-- The environment of this database. Sandbox and production share no data.
CREATE TABLE installation (
    single      boolean PRIMARY KEY DEFAULT true CHECK (single),
    environment text NOT NULL CHECK (environment IN ('sandbox', 'production')),
    created_at  timestamptz NOT NULL DEFAULT now()
);

-- The public addresses of the service that ran last. Commands without these settings show them to merchants.
CREATE TABLE last_served (
    single   boolean PRIMARY KEY DEFAULT true CHECK (single),
    audience text NOT NULL
);

-- Public keys are published at /.well-known/jwks.json. A key signs from active_at on and verifies until retired_at.
CREATE TABLE signing_keys (
    key_id      text PRIMARY KEY,
    private_key bytea NOT NULL,                     -- AES-GCM with the secret key, which is not in the database
    active_at   timestamptz NOT NULL,
    retired_at  timestamptz
);

CREATE TABLE merchants (
    merchant_id         uuid PRIMARY KEY,
    name                text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    minimum             bigint NOT NULL CHECK (minimum > 0),
    maximum             bigint NOT NULL CHECK (maximum >= minimum AND maximum <= 100000000000),
    defer_funds_capture boolean NOT NULL,
    profile             text NOT NULL CHECK (profile IN ('strict', 'lenient')),
    currency            char(3) NOT NULL CHECK (currency = 'USD'),
    origins             text[] NOT NULL,
    signing_secret      bytea NOT NULL,             -- AES-GCM, as above
    webhook_secret      bytea NOT NULL,             -- AES-GCM, as above
    created_at          timestamptz NOT NULL
);
CREATE UNIQUE INDEX merchants_name ON merchants (lower(name));

-- Client secrets are random, 256 bits, so a keyed hash is enough. During a rotation, two secrets are valid.
CREATE TABLE credentials (
    client_id          text PRIMARY KEY,
    merchant_id        uuid NOT NULL REFERENCES merchants,
    secret_hash        bytea NOT NULL,
    old_secret_hash    bytea,
    old_secret_ends_at timestamptz,
    revoked_at         timestamptz,
    created_at         timestamptz NOT NULL
);
CREATE INDEX credentials_merchant ON credentials (merchant_id);

-- Failed token requests of the last minute, by a hash of the client id. A crash may lose these rows without harm.
CREATE UNLOGGED TABLE token_failures (
    client_hash bytea NOT NULL,
    minute      timestamptz NOT NULL,
    failures    integer NOT NULL,
    PRIMARY KEY (client_hash, minute)
);

-- The part of an order that changes when money moves. The row is small, so that captures write little.
CREATE TABLE orders (
    merchant_id      uuid NOT NULL,
    order_id         uuid NOT NULL,
    token            uuid NOT NULL,
    version          integer NOT NULL,              -- rises with every save; a save names the version that it read
    status           text NOT NULL CHECK (status IN (
        'Created',                                  -- order.created
        'Approved',                                 -- order.approved: first installment charged, plan agreed
        'Declined',                                 -- order.declined: declined by risk, or three cards failed
        'Abandoned'                                 -- order.abandoned: the consumer canceled, or time ran out
    )),
    currency         char(3) NOT NULL,
    amount           bigint NOT NULL CHECK (amount > 0),
    captured         bigint NOT NULL DEFAULT 0 CHECK (captured >= 0),
    voided           bigint NOT NULL DEFAULT 0 CHECK (voided >= 0),
    refunded         bigint NOT NULL DEFAULT 0 CHECK (refunded >= 0),
    fee              bigint NOT NULL CHECK (fee >= 0),
    fee_returned     bigint NOT NULL DEFAULT 0,
    auto_capture     boolean NOT NULL,
    lapsed           boolean NOT NULL DEFAULT false,
    card_failures    smallint NOT NULL DEFAULT 0 CHECK (card_failures BETWEEN 0 AND 3),
    charging         uuid,
    charging_since   timestamptz,
    transfers        integer NOT NULL DEFAULT 0,    -- ledger rows written so far: their numbers have no gaps
    events           integer NOT NULL,              -- events written so far: their sequence has no gaps
    created_at       timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    authorization_expires_at timestamptz,
    due_at           timestamptz,                   -- when the background work must act on it
    PRIMARY KEY (merchant_id, order_id),
    CONSTRAINT no_over_capture CHECK (captured + voided <= amount),
    CONSTRAINT no_over_refund CHECK (refunded <= captured),
    CONSTRAINT fee_returned_within_fee CHECK (fee_returned BETWEEN 0 AND fee),
    CONSTRAINT money_moves_on_approved_orders_only
        CHECK (status = 'Approved' OR (captured = 0 AND voided = 0 AND refunded = 0 AND fee_returned = 0)),
    CONSTRAINT charging_is_whole CHECK ((charging IS NULL) = (charging_since IS NULL)),
    CONSTRAINT charging_while_created CHECK (charging IS NULL OR status = 'Created')
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX orders_token ON orders (merchant_id, token);
-- By time first: finding due orders must not read orders that are due much later.
CREATE INDEX orders_due ON orders (due_at, merchant_id) WHERE due_at IS NOT NULL;

-- A final state never changes, totals only rise, and the agreed amount never changes, even in a hand-written UPDATE.
CREATE FUNCTION orders_move_forward_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status <> 'Created' AND NEW.status <> OLD.status THEN
        RAISE EXCEPTION 'order % is % and stays so', OLD.order_id, OLD.status USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.amount <> OLD.amount OR NEW.fee <> OLD.fee OR NEW.captured < OLD.captured OR NEW.voided < OLD.voided
        OR NEW.refunded < OLD.refunded THEN
        RAISE EXCEPTION 'totals of order % only rise', OLD.order_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER orders_move_forward_only BEFORE UPDATE ON orders
    FOR EACH ROW EXECUTE FUNCTION orders_move_forward_only();

-- The part of an order that never changes: its JSON as GET returns it, apart from the row that captures update.
CREATE TABLE order_details (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    reference   text NOT NULL,
    document    json NOT NULL,
    PRIMARY KEY (merchant_id, order_id)
);

-- Captures, voids and refunds. The primary key contains the reference, so a reference cannot be applied twice.
CREATE TABLE movements (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('capture', 'void', 'refund')),
    reference   text NOT NULL CHECK (length(reference) BETWEEN 1 AND 100),
    movement_id uuid NOT NULL,
    amount      bigint NOT NULL CHECK (amount > 0),
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, order_id, kind, reference)
);

-- What the consumer agreed to. Written when the button is pressed, active once the first installment is paid.
CREATE TABLE plans (
    merchant_id    uuid NOT NULL,
    order_id       uuid NOT NULL,
    consumer_id    uuid NOT NULL,
    time_zone      text NOT NULL,
    first_day      date NOT NULL,
    agreement      text NOT NULL,
    agreement_hash text NOT NULL,
    agreed_at      timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, order_id)
);

CREATE TABLE installments (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    number      smallint NOT NULL CHECK (number BETWEEN 1 AND 4),
    due_on      date NOT NULL,
    amount      bigint NOT NULL CHECK (amount >= 0), -- the current amount, reduced by voids and refunds
    fee         bigint NOT NULL CHECK (fee >= 0),
    charge_id   uuid,                               -- the charge that paid it
    returned    bigint NOT NULL DEFAULT 0 CHECK (returned >= 0),
    PRIMARY KEY (merchant_id, order_id, number),
    CONSTRAINT only_paid_money_goes_back CHECK (charge_id IS NOT NULL OR returned = 0)
);

-- Checked at every commit: sum of the plan = original amount - voided - refunded; its fees = fee - returned fee.
CREATE FUNCTION plan_law() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    merchant uuid := coalesce(NEW.merchant_id, OLD.merchant_id);  -- a deleted row has no NEW
    planned_order uuid := coalesce(NEW.order_id, OLD.order_id);
    owed bigint;
    fees bigint;
    planned bigint;
    planned_fees bigint;
    installments_there integer;
BEGIN
    SELECT o.amount - o.voided - o.refunded, o.fee - o.fee_returned INTO owed, fees
        FROM orders o WHERE o.merchant_id = merchant AND o.order_id = planned_order AND o.status = 'Approved';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % has a plan and is not approved', planned_order USING ERRCODE = 'check_violation';
    END IF;
    SELECT coalesce(sum(i.amount), 0), coalesce(sum(i.fee), 0), count(*)
        INTO planned, planned_fees, installments_there
        FROM installments i WHERE i.merchant_id = merchant AND i.order_id = planned_order;
    IF planned <> owed OR planned_fees <> fees OR installments_there <> 4 THEN
        RAISE EXCEPTION 'plan of order % has % installments and sums to % and % in fees, not 4 and % and %',
            planned_order, installments_there, planned, planned_fees, owed, fees USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER plan_law AFTER INSERT OR UPDATE OR DELETE ON installments
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION plan_law();
CREATE CONSTRAINT TRIGGER plan_law AFTER UPDATE ON orders
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.voided <> OLD.voided OR NEW.refunded <> OLD.refunded OR NEW.fee_returned <> OLD.fee_returned
        OR (NEW.status = 'Approved' AND OLD.status <> 'Approved'))
    EXECUTE FUNCTION plan_law();

-- A charge to a card. Written before the rail is called; charge_id is the rail's idempotency key.
CREATE TABLE charges (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    charge_id   uuid NOT NULL,
    installment smallint NOT NULL CHECK (installment BETWEEN 1 AND 4),
    amount      bigint NOT NULL CHECK (amount > 0),
    card_token  text NOT NULL,                      -- the rail's token; never a card number
    card_brand  text NOT NULL,
    card_last4  text NOT NULL CHECK (card_last4 ~ '^[0-9]{4}$'),
    state       text NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed')),
    reason      text,
    created_at  timestamptz NOT NULL,
    settled_at  timestamptz,
    PRIMARY KEY (merchant_id, order_id, charge_id)
);
CREATE UNIQUE INDEX charges_one_at_a_time ON charges (merchant_id, order_id) WHERE state = 'pending';

-- A refund to a card: a job with its own state.
CREATE TABLE card_refunds (
    merchant_id    uuid NOT NULL,
    order_id       uuid NOT NULL,
    card_refund_id uuid NOT NULL,
    charge_id      uuid NOT NULL,
    amount         bigint NOT NULL CHECK (amount > 0),
    state          text NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed')),
    reason         text,
    created_at     timestamptz NOT NULL,
    try_at         timestamptz,                     -- when the rail is called next; null once it is settled
    tries          smallint NOT NULL DEFAULT 0,
    settled_at     timestamptz,
    PRIMARY KEY (merchant_id, order_id, card_refund_id)
);
CREATE INDEX card_refunds_due ON card_refunds (try_at, merchant_id) WHERE try_at IS NOT NULL;

-- The ledger is append-only, by grant and by trigger. A mistake is corrected by a reversing transfer.
CREATE TABLE transfers (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    number      integer NOT NULL CHECK (number > 0),
    posting     text NOT NULL,
    cause       uuid NOT NULL,                      -- the movement, charge or card refund that caused it
    debit       text NOT NULL,
    credit      text NOT NULL,
    amount      bigint NOT NULL CHECK (amount > 0),
    currency    char(3) NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, order_id, number),
    CONSTRAINT two_sides CHECK (debit <> credit),
    CONSTRAINT known_accounts CHECK (
        debit IN ('consumer_receivable', 'authorized_uncaptured', 'merchant_payable', 'card_clearing',
            'consumer_refund_due', 'merchant_fees', 'plan_fees', 'late_fees', 'losses', 'bank_clearing')
        AND credit IN ('consumer_receivable', 'authorized_uncaptured', 'merchant_payable', 'card_clearing',
            'consumer_refund_due', 'merchant_fees', 'plan_fees', 'late_fees', 'losses', 'bank_clearing'))
);

-- Events, numbered from 1 without gaps for each order, and written in the same transaction as the money.
CREATE TABLE events (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    sequence    integer NOT NULL CHECK (sequence > 0),
    type        text NOT NULL,
    operation   text,
    amount      bigint NOT NULL,
    reference   text,
    success     boolean NOT NULL,
    message     text,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, order_id, sequence)
);

-- Every risk decision: its facts, its policy, its result and its reasons.
CREATE TABLE decisions (
    merchant_id    uuid NOT NULL,
    order_id       uuid NOT NULL,
    decided_at     timestamptz NOT NULL,
    approved       boolean NOT NULL,
    reasons        text[] NOT NULL,
    policy_version text NOT NULL,
    inputs         json NOT NULL,
    PRIMARY KEY (merchant_id, order_id, decided_at)
);

CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: answer a mistake with a new row', TG_TABLE_NAME
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON transfers
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON movements
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON decisions
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();

-- Consumers. The id is derived from the verified number with the secret key, so it needs no index to be found.
CREATE TABLE consumers (
    consumer_id uuid PRIMARY KEY,
    phone       text NOT NULL,
    profile     json,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);

-- One browser in one checkout. The cookie's secret and the one-time code are stored as keyed hashes.
CREATE TABLE checkout_sessions (
    merchant_id  uuid NOT NULL,
    order_id     uuid NOT NULL,
    session_hash bytea NOT NULL,
    phone        text,
    code_hash    bytea,
    code_ends_at timestamptz,
    code_tries   smallint NOT NULL DEFAULT 0,
    codes_sent   smallint NOT NULL DEFAULT 0,
    verified_at  timestamptz,
    consumer_id  uuid,
    profile      json,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, order_id, session_hash)
);

-- The one-time codes of an hour, counted for a number or for an order, by a keyed hash of either.
CREATE TABLE codes_sent (
    phone_hash bytea NOT NULL,
    hour       timestamptz NOT NULL,
    sent       integer NOT NULL,
    PRIMARY KEY (phone_hash, hour)
);

-- Answers stored for an Idempotency-Key, for 24 hours. In progress until status is set; after a crash, until lease_ends_at.
CREATE TABLE idempotency_keys (
    merchant_id   uuid NOT NULL,
    key           text NOT NULL,
    request_hash  bytea NOT NULL,
    lease         uuid NOT NULL,
    lease_ends_at timestamptz NOT NULL,
    status        smallint,
    body          bytea,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, key)
);
CREATE INDEX idempotency_keys_old ON idempotency_keys (created_at);

-- The service runs as cuota_app: it may add rows to the ledger but never change them.
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'cuota_app') THEN
        CREATE ROLE cuota_app NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;  -- another database of the same server was quicker
END $$;
GRANT cuota_app TO CURRENT_USER;
GRANT SELECT, INSERT, UPDATE ON last_served TO cuota_app;
GRANT SELECT, INSERT ON installation, transfers, movements, events, decisions, plans, order_details TO cuota_app;
GRANT SELECT, INSERT, UPDATE ON signing_keys, merchants, credentials, orders, installments, charges, card_refunds,
    consumers TO cuota_app;
GRANT UPDATE ON plans TO cuota_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON token_failures, checkout_sessions, codes_sent, idempotency_keys TO cuota_app;
