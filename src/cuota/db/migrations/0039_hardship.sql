-- The operator changes the plan of a consumer in hardship (docs/plan.md), blocks a consumer, and reads the messages that were
-- sent.

-- After a change, a plan may have more than four installments. NOT VALID: every older row satisfies the narrower check.
ALTER TABLE installments DROP CONSTRAINT installments_number_check;
ALTER TABLE installments ADD CONSTRAINT installments_number_check CHECK (number BETWEEN 1 AND 40) NOT VALID;
-- Widened: the rows that the previous release writes still satisfy this check.
ALTER TABLE charges DROP CONSTRAINT charges_installment_check;
ALTER TABLE charges ADD CONSTRAINT charges_installment_check CHECK (installment BETWEEN 1 AND 40) NOT VALID;
-- Widened: the rows that the previous release writes still satisfy this check.
ALTER TABLE messages DROP CONSTRAINT messages_installment_check;
ALTER TABLE messages ADD CONSTRAINT messages_installment_check CHECK (installment BETWEEN 1 AND 40) NOT VALID;
-- Widened: the rows that the previous release writes still satisfy this check.
ALTER TABLE return_notices DROP CONSTRAINT return_notices_installment_check;
ALTER TABLE return_notices ADD CONSTRAINT return_notices_installment_check CHECK (installment BETWEEN 1 AND 40) NOT VALID;
-- Widened: the rows that the previous release writes still satisfy this check.
ALTER TABLE messages DROP CONSTRAINT messages_kind_check;
ALTER TABLE messages ADD CONSTRAINT messages_kind_check CHECK (kind IN (
    'plan_started', 'reminder', 'payment_received', 'payment_failed', 'card_needed', 'card_changed', 'declined',
    'plan_paid_off', 'refunded', 'voided', 'expired', 'confirmation_needed', 'dispute_opened', 'dispute_upheld',
    'dispute_rejected', 'dispute_appealed', 'dispute_ended', 'return_noted', 'plan_changed')) NOT VALID;
ALTER TABLE messages ADD COLUMN said bytea;         -- AES-GCM: the text that was sent, and its recipient; null after an erasure

-- The agreed changes of a plan. The plan's first agreement is never changed.
CREATE TABLE plan_changes (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    number      smallint NOT NULL CHECK (number BETWEEN 1 AND 100),   -- the first change of the plan has number 1
    change_id   uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('dates_moved', 'paused', 'smaller_payments', 'fee_waived')),
    changed_at  timestamptz NOT NULL,
    changed_by  text NOT NULL,                      -- the person or command of the operator
    days        smallint NOT NULL CHECK (days BETWEEN 0 AND 3650),    -- days of the pause, or the most days by which a payment moved
    waived      bigint NOT NULL CHECK (waived >= 0),                  -- cents of the plan's fee
    payments    smallint NOT NULL CHECK (payments BETWEEN 4 AND 40),  -- installments of the plan after the change
    transfers   integer NOT NULL,                   -- the ledger rows of the order before the change
    before      json NOT NULL,                      -- the installments: [[number, day, amount, fee], ...]
    after       json NOT NULL,
    reason      bytea,                              -- AES-GCM: the reason; null after an erasure
    text        text NOT NULL,                      -- the agreed text; empty after an erasure
    text_hash   text NOT NULL,
    message_id  uuid NOT NULL,
    told_at     timestamptz,                        -- when the message with the new plan was sent
    PRIMARY KEY (merchant_id, order_id, number),
    CONSTRAINT each_kind_has_its_numbers CHECK ((kind = 'fee_waived') = (waived > 0)
        AND CASE kind WHEN 'fee_waived' THEN days = 0 WHEN 'smaller_payments' THEN true ELSE days > 0 END)
);
CREATE UNIQUE INDEX plan_changes_id ON plan_changes (merchant_id, change_id);

-- A change is stored as it was agreed. Later updates may only add the time of the message, or remove the texts in an erasure.
CREATE FUNCTION plan_changes_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR (NEW.merchant_id, NEW.order_id, NEW.number, NEW.change_id, NEW.kind, NEW.changed_at, NEW.changed_by, NEW.days,
            NEW.waived, NEW.payments, NEW.transfers, NEW.before::text, NEW.after::text, NEW.text_hash, NEW.message_id)
        IS DISTINCT FROM (OLD.merchant_id, OLD.order_id, OLD.number, OLD.change_id, OLD.kind, OLD.changed_at, OLD.changed_by, OLD.days,
            OLD.waived, OLD.payments, OLD.transfers, OLD.before::text, OLD.after::text, OLD.text_hash, OLD.message_id)
        OR NEW.text NOT IN (OLD.text, '') OR (OLD.told_at IS NOT NULL AND NEW.told_at IS DISTINCT FROM OLD.told_at) THEN
        RAISE EXCEPTION 'change % of the plan of order % stays as it was agreed', OLD.number, OLD.order_id
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER plan_changes_stay BEFORE UPDATE OR DELETE ON plan_changes
    FOR EACH ROW EXECUTE FUNCTION plan_changes_stay();

-- Checked at the commit that adds a change. The change follows the previous change, its installments are those of the plan, the
-- sum of the payments stays the same, and only waived money leaves the fees.
CREATE FUNCTION plan_change_law() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    planned json;
    old_amount bigint;
    old_fee bigint;
    new_amount bigint;
    new_fee bigint;
    posted bigint;
BEGIN
    SELECT json_agg(json_build_array(i.number, i.due_on, i.amount, i.fee) ORDER BY i.number) INTO planned FROM installments i
        WHERE i.merchant_id = NEW.merchant_id AND i.order_id = NEW.order_id;
    IF planned::jsonb IS DISTINCT FROM NEW.after::jsonb THEN
        RAISE EXCEPTION 'change % says that the plan of order % becomes %, but it is %', NEW.number, NEW.order_id, NEW.after, planned
            USING ERRCODE = 'check_violation';
    END IF;
    SELECT sum((b ->> 2)::bigint), sum((b ->> 3)::bigint) INTO old_amount, old_fee FROM json_array_elements(NEW.before) b;
    SELECT sum((a ->> 2)::bigint), sum((a ->> 3)::bigint) INTO new_amount, new_fee FROM json_array_elements(NEW.after) a;
    SELECT coalesce(sum(t.amount), 0) INTO posted FROM transfers t WHERE t.merchant_id = NEW.merchant_id
        AND t.order_id = NEW.order_id AND t.posting = 'fee_waived' AND t.cause = NEW.change_id;
    IF new_amount <> old_amount OR old_fee - new_fee <> NEW.waived OR posted <> NEW.waived
        OR json_array_length(NEW.after) <> NEW.payments THEN
        RAISE EXCEPTION 'change % of order % takes % and % in fees, says %, and the ledger says %', NEW.number, NEW.order_id,
            old_amount - new_amount, old_fee - new_fee, NEW.waived, posted USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.number <> (SELECT count(*) FROM plan_changes c WHERE c.merchant_id = NEW.merchant_id AND c.order_id = NEW.order_id) THEN
        RAISE EXCEPTION 'change % of order % does not follow the change before it', NEW.number, NEW.order_id
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER plan_change_law AFTER INSERT ON plan_changes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION plan_change_law();

-- As in migration 0001. A plan has four installments, or the number in its last change, numbered from 1 without gaps.
CREATE OR REPLACE FUNCTION plan_law() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    merchant uuid := coalesce(NEW.merchant_id, OLD.merchant_id);  -- a deleted row has no NEW
    planned_order uuid := coalesce(NEW.order_id, OLD.order_id);
    owed bigint;
    fees bigint;
    planned bigint;
    planned_fees bigint;
    installments_there integer;
    last_number integer;
    agreed_number integer;
BEGIN
    SELECT o.amount - o.voided - o.refunded, o.fee - o.fee_returned INTO owed, fees
        FROM orders o WHERE o.merchant_id = merchant AND o.order_id = planned_order AND o.status = 'Approved';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % has a plan and is not approved', planned_order USING ERRCODE = 'check_violation';
    END IF;
    SELECT coalesce(sum(i.amount), 0), coalesce(sum(i.fee), 0), count(*), max(i.number)
        INTO planned, planned_fees, installments_there, last_number
        FROM installments i WHERE i.merchant_id = merchant AND i.order_id = planned_order;
    SELECT c.payments INTO agreed_number FROM plan_changes c WHERE c.merchant_id = merchant AND c.order_id = planned_order
        ORDER BY c.number DESC LIMIT 1;
    agreed_number := coalesce(agreed_number, 4);
    IF planned <> owed OR planned_fees <> fees OR installments_there <> agreed_number OR last_number <> agreed_number THEN
        RAISE EXCEPTION 'plan of order % has % installments and sums to % and % in fees, not % and % and %',
            planned_order, installments_there, planned, planned_fees, agreed_number, owed, fees USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

-- Saves one order together with a change of its plan. The first parameters are those of save_orders. Returns the order's id. If
-- the order has changed since it was read, the function writes nothing and returns nothing.
CREATE FUNCTION save_plan_change(
    merchant uuid, orders_order_id uuid[], orders_version integer[], orders_transfers integer[], orders_events
    integer[], orders_status text[], orders_captured bigint[], orders_voided bigint[], orders_refunded bigint[],
    orders_fee_returned bigint[], orders_authorization_expires_at timestamptz[], orders_lapsed boolean[],
    orders_warned smallint[], orders_card_failures smallint[], orders_charging uuid[], orders_charging_since
    timestamptz[], orders_collect_at timestamptz[], orders_due_at timestamptz[], movements_order_id uuid[],
    movements_kind text[], movements_reference text[], movements_movement_id uuid[], movements_amount bigint[],
    movements_created_at timestamptz[], transfers_order_id uuid[], transfers_number integer[], transfers_posting
    text[], transfers_cause uuid[], transfers_debit text[], transfers_credit text[], transfers_amount bigint[],
    transfers_currency text[], transfers_created_at timestamptz[], events_order_id uuid[], events_sequence
    integer[], events_type text[], events_operation text[], events_amount bigint[], events_reference text[],
    events_success boolean[], events_message text[], events_created_at timestamptz[], installments json,
    card_refunds json, messages json, charges json, charges_settled json, card_refunds_settled json, plans json,
    plan_cards json, decisions json, signals json, answer_key text, answer_lease uuid, answer_status smallint,
    answer_body bytea,
    change json
) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    saved uuid[];
    saved_order uuid := orders_order_id[1];
    r record;
BEGIN
    saved := save_orders(
        merchant, orders_order_id, orders_version, orders_transfers, orders_events, orders_status,
        orders_captured, orders_voided, orders_refunded, orders_fee_returned, orders_authorization_expires_at,
        orders_lapsed, orders_warned, orders_card_failures, orders_charging, orders_charging_since,
        orders_collect_at, orders_due_at, movements_order_id, movements_kind, movements_reference,
        movements_movement_id, movements_amount, movements_created_at, transfers_order_id, transfers_number,
        transfers_posting, transfers_cause, transfers_debit, transfers_credit, transfers_amount,
        transfers_currency, transfers_created_at, events_order_id, events_sequence, events_type,
        events_operation, events_amount, events_reference, events_success, events_message, events_created_at,
        installments, card_refunds, messages, charges, charges_settled, card_refunds_settled, plans, plan_cards,
        decisions, signals, answer_key, answer_lease, answer_status, answer_body);
    IF saved = '{}' THEN
        RETURN saved;
    END IF;
    FOR r IN SELECT * FROM json_to_recordset(installments) AS n (number smallint, due_on date) LOOP
        UPDATE installments p SET due_on = r.due_on WHERE p.merchant_id = merchant AND p.order_id = saved_order
            AND p.number = r.number AND p.due_on <> r.due_on;
    END LOOP;
    -- The change decides the days of all payments. So a refund of returned goods does not move a payment back to its old day.
    UPDATE return_notices w SET installment = NULL, due_on = NULL WHERE w.merchant_id = merchant AND w.order_id = saved_order
        AND w.ended_at IS NULL AND w.installment IS NOT NULL;
    FOR r IN SELECT * FROM json_to_recordset(change) AS n (number smallint, change_id uuid, kind text, changed_at timestamptz,
        changed_by text, days smallint, waived bigint, payments smallint, transfers integer, before json, after json, reason bytea,
        text text, text_hash text, message_id uuid)
    LOOP
        INSERT INTO plan_changes (merchant_id, order_id, number, change_id, kind, changed_at, changed_by, days, waived, payments,
            transfers, before, after, reason, text, text_hash, message_id)
            VALUES (merchant, saved_order, r.number, r.change_id, r.kind, r.changed_at, r.changed_by, r.days, r.waived, r.payments,
                r.transfers, r.before, r.after, r.reason, r.text, r.text_hash, r.message_id);
    END LOOP;
    RETURN saved;
END $$;

-- The plan fees that were waived for a consumer, at all merchants. They are stored here to enforce the limit of a year. A row
-- is reserved before the plan changes, and settled afterward.
CREATE TABLE consumer_waivers (
    consumer_id uuid NOT NULL,
    change_id   uuid NOT NULL,
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    amount      bigint NOT NULL CHECK (amount > 0),
    at          timestamptz NOT NULL,
    settled     boolean NOT NULL DEFAULT false,     -- false: it is not known yet whether the plan was changed
    PRIMARY KEY (consumer_id, change_id)
);

-- Reserves a part of the fees that may be waived for a consumer since `since`. Returns how many cents were waived before. If
-- this number plus `cents` is more than `most`, nothing was reserved.
CREATE FUNCTION reserve_waiver(
    consumer uuid, change uuid, merchant uuid, ordered uuid, cents bigint, asked_at timestamptz, since timestamptz, most bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    used bigint;
BEGIN
    -- Two waivers of one consumer wait for each other here.
    INSERT INTO consumer_exposure AS e (consumer_id, version) VALUES (consumer, 0)
        ON CONFLICT (consumer_id) DO UPDATE SET version = e.version;
    SELECT coalesce(sum(w.amount), 0) INTO used FROM consumer_waivers w WHERE w.consumer_id = consumer AND w.at > since
        AND w.change_id <> change;
    IF used + cents <= most THEN
        INSERT INTO consumer_waivers (consumer_id, change_id, merchant_id, order_id, amount, at)
            VALUES (consumer, change, merchant, ordered, cents, asked_at) ON CONFLICT DO NOTHING;
    END IF;
    RETURN used;
END $$;

-- Consumers whom the operator has blocked. Their orders are declined, but they can still pay the money that they owe. An
-- erasure deletes the reason and keeps the row, because the consumer's id is a keyed hash.
CREATE TABLE consumer_blocks (
    consumer_id uuid NOT NULL,
    block_id    uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('identity', 'misuse', 'unpaid', 'own_request')),
    reason      bytea,                              -- AES-GCM: the reason; null after an erasure
    blocked_at  timestamptz NOT NULL,
    blocked_by  text NOT NULL,
    until       timestamptz,                        -- null: until a person ends the block
    ended_at    timestamptz,
    ended_by    text,
    PRIMARY KEY (consumer_id, block_id),
    CONSTRAINT ends_after_it_began CHECK (until IS NULL OR until > blocked_at),
    CONSTRAINT ended_by_somebody CHECK ((ended_at IS NULL) = (ended_by IS NULL))
);
CREATE UNIQUE INDEX consumer_blocks_one ON consumer_blocks (consumer_id) WHERE ended_at IS NULL;

GRANT SELECT, INSERT ON plan_changes TO cuota_app;
GRANT UPDATE (told_at, text, reason) ON plan_changes TO cuota_app;
GRANT SELECT, INSERT, UPDATE (settled), DELETE ON consumer_waivers TO cuota_app;
GRANT SELECT, INSERT, UPDATE (reason, ended_at, ended_by) ON consumer_blocks TO cuota_app;
REVOKE ALL ON FUNCTION save_plan_change, reserve_waiver FROM PUBLIC;
GRANT EXECUTE ON FUNCTION save_plan_change, reserve_waiver TO cuota_app;
