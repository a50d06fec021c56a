-- Reviews: an order whose score is between approved and declined waits for a person (docs/risk.md).

ALTER TABLE orders
    ADD COLUMN review text,                         -- the state of the order's review; null: the order was never referred
    ADD COLUMN review_by timestamptz;               -- the deadline of the review, while the order waits
-- NOT VALID: no older row has a review, so PostgreSQL need not read the table.
ALTER TABLE orders ADD CONSTRAINT orders_review CHECK (review IN ('waiting', 'approved', 'declined', 'unanswered', 'closed')) NOT VALID;
-- While a person looks at the order, no card is charged, and the order does not end without an answer.
ALTER TABLE orders ADD CONSTRAINT orders_review_waits CHECK ((review_by IS NOT NULL) = (review IS NOT DISTINCT FROM 'waiting')
    AND (review_by IS NULL OR (status = 'Created' AND charging IS NULL AND review_by < expires_at))) NOT VALID;
ALTER TABLE orders ADD CONSTRAINT orders_review_ends CHECK ((review NOT IN ('declined', 'unanswered') OR status = 'Declined')
    AND (review <> 'closed' OR status = 'Abandoned')) NOT VALID;

-- One row for each order that was referred, with the facts of the referral.
CREATE TABLE reviews (
    merchant_id    uuid NOT NULL,
    order_id       uuid NOT NULL,
    consumer_id    uuid NOT NULL,
    policy_version text NOT NULL,
    inputs         json NOT NULL,                   -- the facts of the referral, as in decisions
    inputs_hash    bytea NOT NULL,                  -- SHA-256 of the inputs' text, to detect an altered text
    reasons        text[] NOT NULL CONSTRAINT reviews_reasons CHECK (cardinality(reasons) > 0),  -- the reasons for a decline
    score          integer NOT NULL,
    credit_limit   bigint NOT NULL,                 -- cents: the most that this consumer may owe
    time_zone      text NOT NULL,                   -- the consumer's time zone
    referred_at    timestamptz NOT NULL,
    answer_by      timestamptz NOT NULL CONSTRAINT reviews_answer_by CHECK (answer_by > referred_at),
    state          text NOT NULL DEFAULT 'waiting'
        CONSTRAINT reviews_state CHECK (state IN ('waiting', 'approved', 'declined', 'unanswered', 'closed')),
    answered_at    timestamptz,
    person_id      uuid,                            -- a person of the operator; null: a command, the job, or the consumer canceled
    answerer       text NOT NULL DEFAULT '',        -- the name and address of that person at that time, or the command's user
    reason         text NOT NULL DEFAULT '',        -- the operator's reason; an erasure of the consumer removes it
    CONSTRAINT reviews_pkey PRIMARY KEY (merchant_id, order_id),
    CONSTRAINT reviews_answered CHECK ((state = 'waiting') = (answered_at IS NULL)),
    -- A person's answer has a name and a reason. The reason may be removed later.
    CONSTRAINT reviews_answerer CHECK ((state IN ('approved', 'declined')) = (answerer <> ''))
);
-- For the lists: waiting reviews, the earliest deadline first; and the newest reviews of each kind.
CREATE INDEX reviews_waiting ON reviews (answer_by, order_id) WHERE state = 'waiting';
CREATE INDEX reviews_newest ON reviews (state, referred_at DESC, order_id DESC);
CREATE INDEX reviews_of_merchant ON reviews (merchant_id, referred_at, order_id);
CREATE INDEX reviews_consumer ON reviews (consumer_id);

-- A review is answered once, and its referral never changes.
CREATE FUNCTION reviews_are_answered_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'waiting' AND (NEW.state, NEW.answered_at, NEW.person_id, NEW.answerer)
        IS DISTINCT FROM (OLD.state, OLD.answered_at, OLD.person_id, OLD.answerer) THEN
        RAISE EXCEPTION 'the review of order % is % already', OLD.order_id, OLD.state USING ERRCODE = 'check_violation';
    END IF;
    IF (NEW.consumer_id, NEW.policy_version, NEW.inputs::text, NEW.inputs_hash, NEW.reasons, NEW.score, NEW.credit_limit,
            NEW.time_zone, NEW.referred_at, NEW.answer_by)
        IS DISTINCT FROM (OLD.consumer_id, OLD.policy_version, OLD.inputs::text, OLD.inputs_hash, OLD.reasons, OLD.score,
            OLD.credit_limit, OLD.time_zone, OLD.referred_at, OLD.answer_by) THEN
        RAISE EXCEPTION 'the referral of order % cannot change', OLD.order_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER reviews_are_answered_once BEFORE UPDATE ON reviews
    FOR EACH ROW EXECUTE FUNCTION reviews_are_answered_once();

-- Checked at every commit: the order and its review have the same state.
CREATE FUNCTION review_of_order() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    merchant uuid := NEW.merchant_id;
    reviewed_order uuid := NEW.order_id;
    of_order text;
    of_review text;
BEGIN
    SELECT o.review INTO of_order FROM orders o WHERE o.merchant_id = merchant AND o.order_id = reviewed_order;
    SELECT r.state INTO of_review FROM reviews r WHERE r.merchant_id = merchant AND r.order_id = reviewed_order;
    IF of_order IS DISTINCT FROM of_review THEN
        RAISE EXCEPTION 'order % says that its review is %, its review says %', reviewed_order, of_order, of_review
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER review_of_order AFTER INSERT OR UPDATE ON reviews
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION review_of_order();
CREATE CONSTRAINT TRIGGER review_of_order AFTER UPDATE ON orders
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.review IS DISTINCT FROM OLD.review) EXECUTE FUNCTION review_of_order();

-- Saves one order whose review begins or ends. The first parameters are those of save_orders. Returns the order's id. If the
-- order has changed since it was read, the function writes nothing and returns nothing.
CREATE FUNCTION save_reviewed(
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
    reviewed_review text, reviewed_review_by timestamptz, reviews json, reviews_answered json
) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    saved uuid[];
    saved_order uuid := orders_order_id[1];
    read_version integer := orders_version[1];
    one_status text := orders_status[1];
    r record;
BEGIN
    -- The status too, because the constraints about reviews compare the two.
    UPDATE orders o SET review = reviewed_review, review_by = reviewed_review_by, status = one_status
        WHERE o.merchant_id = merchant AND o.order_id = saved_order AND o.version = read_version;
    IF NOT FOUND THEN
        RETURN '{}';
    END IF;
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
        -- The lease of an Idempotency-Key was lost. The error takes the UPDATE back; the caller reads it as "not saved".
        RAISE EXCEPTION 'order % was not saved', saved_order USING ERRCODE = 'unique_violation';
    END IF;
    FOR r IN SELECT * FROM json_to_recordset(reviews) AS n (consumer_id uuid, policy_version text, inputs text, inputs_hash bytea,
        reasons text[], score integer, credit_limit bigint, time_zone text, referred_at timestamptz, answer_by timestamptz)
    LOOP
        INSERT INTO reviews (merchant_id, order_id, consumer_id, policy_version, inputs, inputs_hash, reasons, score,
            credit_limit, time_zone, referred_at, answer_by) VALUES (merchant, saved_order, r.consumer_id, r.policy_version,
                r.inputs::json, r.inputs_hash, r.reasons, r.score, r.credit_limit, r.time_zone, r.referred_at, r.answer_by);
    END LOOP;
    FOR r IN SELECT * FROM json_to_recordset(reviews_answered) AS n (state text, answered_at timestamptz, person_id uuid,
        answerer text, reason text)
    LOOP
        UPDATE reviews v SET state = r.state, answered_at = r.answered_at, person_id = r.person_id, answerer = r.answerer,
            reason = r.reason WHERE v.merchant_id = merchant AND v.order_id = saved_order;
    END LOOP;
    RETURN saved;
END $$;

-- The check below is wider, so the rows that the previous release writes still satisfy it. NOT VALID: every older row satisfies
-- the narrower check.
ALTER TABLE messages DROP CONSTRAINT messages_kind_check;
ALTER TABLE messages ADD CONSTRAINT messages_kind_check CHECK (kind IN (
    'plan_started', 'reminder', 'payment_received', 'payment_failed', 'card_needed', 'card_changed', 'declined',
    'plan_paid_off', 'refunded', 'voided', 'expired', 'confirmation_needed', 'dispute_opened', 'dispute_upheld',
    'dispute_rejected', 'dispute_appealed', 'dispute_ended', 'return_noted', 'plan_changed', 'review_approved',
    'review_declined')) NOT VALID;

GRANT SELECT, INSERT, UPDATE ON reviews TO cuota_app;
REVOKE ALL ON FUNCTION save_reviewed FROM PUBLIC;
GRANT EXECUTE ON FUNCTION save_reviewed TO cuota_app;
