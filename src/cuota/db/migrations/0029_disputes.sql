-- Disputes, chargebacks and return notices (docs/disputes.md).
--
-- An order's disputes change only together with the order, by save_claims below, which calls save_orders. So the version guard,
-- the unique keys and the stored answers of save_orders protect them too.

ALTER TABLE orders
    ADD COLUMN disputed bigint NOT NULL DEFAULT 0,              -- withheld from the merchant for the consumer's dispute
    ADD COLUMN charged_back bigint NOT NULL DEFAULT 0,          -- withheld from the merchant for chargebacks
    ADD COLUMN open_disputes smallint NOT NULL DEFAULT 0,       -- with chargebacks
    ADD COLUMN open_chargebacks smallint NOT NULL DEFAULT 0,
    ADD COLUMN paused_at timestamptz,                           -- since when no payment is scheduled, because of a dispute
    ADD COLUMN return_hold_until timestamptz;                   -- a payment waits for the refund of returned goods
-- Nobody is credited twice. NOT VALID: no older row has a dispute, so the table need not be read.
-- One constraint in each statement, because Citus takes no more.
ALTER TABLE orders ADD CONSTRAINT nobody_is_credited_twice CHECK (disputed >= 0 AND charged_back >= 0
    AND refunded + disputed + charged_back <= captured) NOT VALID;
ALTER TABLE orders ADD CONSTRAINT paused_while_disputed CHECK ((open_disputes > 0) = (paused_at IS NOT NULL)
        AND open_chargebacks BETWEEN 0 AND open_disputes AND (open_disputes > 0 OR disputed + charged_back = 0)) NOT VALID;

-- Widened below: what the previous release writes still passes.
ALTER TABLE transfers DROP CONSTRAINT known_accounts;
-- NOT VALID: every older row satisfies the shorter list.
ALTER TABLE transfers ADD CONSTRAINT known_accounts CHECK (
    debit IN ('consumer_receivable', 'authorized_uncaptured', 'merchant_payable', 'card_clearing', 'consumer_refund_due',
        'merchant_fees', 'plan_fees', 'late_fees', 'losses', 'bank_clearing', 'disputes_withheld', 'chargebacks')
    AND credit IN ('consumer_receivable', 'authorized_uncaptured', 'merchant_payable', 'card_clearing', 'consumer_refund_due',
        'merchant_fees', 'plan_fees', 'late_fees', 'losses', 'bank_clearing', 'disputes_withheld', 'chargebacks')) NOT VALID;

-- Widened below: what the previous release writes still passes.
ALTER TABLE messages DROP CONSTRAINT messages_kind_check;
ALTER TABLE messages ADD CONSTRAINT messages_kind_check CHECK (kind IN (
    'plan_started', 'reminder', 'payment_received', 'payment_failed', 'card_needed', 'card_changed', 'declined',
    'plan_paid_off', 'refunded', 'voided', 'expired', 'confirmation_needed', 'dispute_opened', 'dispute_upheld',
    'dispute_rejected', 'dispute_appealed', 'dispute_ended', 'return_noted')) NOT VALID;
-- Widened below: a message about the end of a dispute has no amount if nothing was refunded.
ALTER TABLE messages DROP CONSTRAINT messages_amount_check;
ALTER TABLE messages ADD CONSTRAINT messages_amount_check CHECK (amount >= 0) NOT VALID;

CREATE TABLE disputes (
    merchant_id  uuid NOT NULL,
    dispute_id   uuid NOT NULL,
    order_id     uuid NOT NULL,
    kind         text NOT NULL CHECK (kind IN ('dispute', 'chargeback')),
    reason       text NOT NULL CHECK (reason IN ('not_received', 'not_as_described', 'not_refunded', 'wrong_amount', 'not_mine',
        'other')),
    status       text NOT NULL CHECK (status IN ('open', 'under_review', 'won', 'lost', 'appealed', 'closed')),
    amount       bigint NOT NULL CHECK (amount > 0),            -- what is asked for; it never changes
    withheld     bigint NOT NULL CHECK (withheld BETWEEN 0 AND amount),
    opened_by    text NOT NULL CHECK (opened_by IN ('consumer', 'operator', 'network')),
    opened_at    timestamptz NOT NULL,
    respond_by   timestamptz NOT NULL,
    reminded     boolean NOT NULL DEFAULT false,
    submitted_at timestamptz,
    decided_at   timestamptz,
    appeal_by    timestamptz,                       -- when the decision becomes final; null while undecided, or closed
    final        boolean NOT NULL DEFAULT false,    -- nobody can appeal
    appealed_by  text CHECK (appealed_by IN ('consumer', 'merchant')),
    appealed_at  timestamptz,
    closed_at    timestamptz,
    outcome      text CHECK (outcome IN ('won', 'lost', 'withdrawn', 'resolved')),
    movement_id  uuid,                              -- the refund that a lost dispute made
    release_id   uuid,                              -- the cause of the ledger rows that released what was withheld
    charge_id    uuid,                              -- of a chargeback: the charge that the network took back
    reference    text,                              -- of a chargeback: the processor's own id
    due_at       timestamptz,                       -- when its next scheduled work is due
    PRIMARY KEY (merchant_id, dispute_id),
    CONSTRAINT closed_with_outcome CHECK ((status = 'closed') = (outcome IS NOT NULL AND closed_at IS NOT NULL)
        AND (status <> 'closed' OR withheld = 0)),
    CONSTRAINT chargeback_of_a_charge CHECK ((kind = 'chargeback') = (charge_id IS NOT NULL AND reference IS NOT NULL))
);
CREATE UNIQUE INDEX disputes_one_open ON disputes (merchant_id, order_id) WHERE kind = 'dispute' AND status <> 'closed';
CREATE UNIQUE INDEX disputes_reference ON disputes (merchant_id, order_id, reference) WHERE reference IS NOT NULL;
CREATE INDEX disputes_of_order ON disputes (merchant_id, order_id);
CREATE INDEX disputes_due ON disputes (due_at, merchant_id) WHERE due_at IS NOT NULL;

-- What a side wrote. The files of a statement are stored before it, and count only with it.
CREATE TABLE dispute_evidence (
    merchant_id uuid NOT NULL,
    dispute_id  uuid NOT NULL,
    evidence_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    party       text NOT NULL CHECK (party IN ('consumer', 'merchant', 'operator')),
    text        bytea,                              -- AES-GCM; null after an erasure
    at          timestamptz NOT NULL,
    send_at     timestamptz,                        -- of a chargeback: when the card processor is sent it next
    tries       smallint NOT NULL DEFAULT 0,
    sent_at     timestamptz,
    PRIMARY KEY (merchant_id, dispute_id, evidence_id)
);
CREATE INDEX dispute_evidence_due ON dispute_evidence (send_at, merchant_id) WHERE send_at IS NOT NULL;

CREATE TABLE dispute_files (
    merchant_id uuid NOT NULL,
    evidence_id uuid NOT NULL,
    number      smallint NOT NULL CHECK (number BETWEEN 1 AND 5),
    dispute_id  uuid NOT NULL,
    name        bytea NOT NULL,                     -- AES-GCM
    media_type  text NOT NULL CHECK (media_type IN ('application/pdf', 'image/png', 'image/jpeg', 'image/webp', 'text/plain')),
    size        integer NOT NULL CHECK (size BETWEEN 1 AND 5242880),  -- bytes, before encryption
    content     bytea NOT NULL,                     -- AES-GCM, of the content in base64
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, evidence_id, number)
);
CREATE INDEX dispute_files_of_dispute ON dispute_files (merchant_id, dispute_id);

CREATE TABLE return_notices (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    return_id   uuid NOT NULL,
    carrier     text NOT NULL,
    tracking    text NOT NULL,
    noticed_at  timestamptz NOT NULL,
    hold_until  timestamptz NOT NULL,
    installment smallint CHECK (installment BETWEEN 1 AND 4),         -- the payment that waits
    due_on      date,                               -- its day before
    ended_at    timestamptz,                        -- by a refund
    PRIMARY KEY (merchant_id, order_id, return_id)
);

-- How many captures and disputes a merchant had on each day (UTC). The rate of disputes is a fact for risk decisions.
CREATE TABLE settlement_days (
    merchant_id uuid NOT NULL,
    day         date NOT NULL,
    captures    integer NOT NULL,
    disputes    integer NOT NULL,
    PRIMARY KEY (merchant_id, day)
);

-- A dispute only moves along the edges of core/dispute/dispute.py, and what it is about never changes.
CREATE FUNCTION disputes_follow_their_edges() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN (('open', 'under_review'), ('open', 'won'),
        ('open', 'lost'), ('under_review', 'won'), ('under_review', 'lost'), ('won', 'appealed'), ('lost', 'appealed'),
        ('appealed', 'won'), ('appealed', 'lost'), ('open', 'closed'), ('under_review', 'closed'), ('won', 'closed'),
        ('lost', 'closed'), ('appealed', 'closed')) THEN
        RAISE EXCEPTION 'dispute % cannot become % after %', OLD.dispute_id, NEW.status, OLD.status
            USING ERRCODE = 'check_violation';
    END IF;
    IF (NEW.order_id, NEW.kind, NEW.reason, NEW.amount, NEW.opened_at, NEW.charge_id, NEW.reference)
        IS DISTINCT FROM (OLD.order_id, OLD.kind, OLD.reason, OLD.amount, OLD.opened_at, OLD.charge_id, OLD.reference)
        OR NEW.withheld > OLD.withheld THEN
        RAISE EXCEPTION 'dispute % cannot change what it is about', OLD.dispute_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER disputes_follow_their_edges BEFORE UPDATE ON disputes
    FOR EACH ROW EXECUTE FUNCTION disputes_follow_their_edges();

-- Checked at every commit: what an order says about its disputes is the sum of its disputes.
CREATE FUNCTION disputes_sum_up() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    merchant uuid := NEW.merchant_id;
    disputed_order uuid := NEW.order_id;
    held orders%ROWTYPE;
    of_consumer bigint;
    of_networks bigint;
    unclosed integer;
BEGIN
    SELECT * INTO held FROM orders o WHERE o.merchant_id = merchant AND o.order_id = disputed_order;
    SELECT coalesce(sum(d.withheld) FILTER (WHERE d.kind = 'dispute'), 0),
        coalesce(sum(d.withheld) FILTER (WHERE d.kind = 'chargeback'), 0), count(*) FILTER (WHERE d.status <> 'closed')
        INTO of_consumer, of_networks, unclosed
        FROM disputes d WHERE d.merchant_id = merchant AND d.order_id = disputed_order;
    IF (held.disputed, held.charged_back, held.open_disputes) IS DISTINCT FROM (of_consumer, of_networks, unclosed) THEN
        RAISE EXCEPTION 'order % says % disputed, % charged back, % open; its disputes say %, % and %', disputed_order,
            held.disputed, held.charged_back, held.open_disputes, of_consumer, of_networks, unclosed
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER disputes_sum_up AFTER INSERT OR UPDATE ON disputes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION disputes_sum_up();
CREATE CONSTRAINT TRIGGER disputes_sum_up AFTER UPDATE ON orders
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.disputed <> OLD.disputed OR NEW.charged_back <> OLD.charged_back OR NEW.open_disputes <> OLD.open_disputes)
    EXECUTE FUNCTION disputes_sum_up();

-- Saves one order together with its disputes, a statement and a return notice. The parameters begin with those of save_orders.
-- Returns the order's id, or nothing if the order has changed since it was read; then nothing is written.
CREATE FUNCTION save_claims(
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
    claims_disputed bigint, claims_charged_back bigint, claims_open_disputes smallint, claims_open_chargebacks smallint,
    claims_paused_at timestamptz, claims_return_hold_until timestamptz, claims_disputes json, claims_evidence json,
    claims_returned json
) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    saved uuid[];
    saved_order uuid := orders_order_id[1];
    read_version integer := orders_version[1];
    r record;
BEGIN
    -- First, because money that was withheld must be free before it is refunded.
    UPDATE orders o SET disputed = claims_disputed, charged_back = claims_charged_back, open_disputes = claims_open_disputes,
        open_chargebacks = claims_open_chargebacks, paused_at = claims_paused_at,
        return_hold_until = claims_return_hold_until
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
        -- The lease of the Idempotency-Key was lost. The error takes the UPDATE back; the caller reads it as "not saved".
        RAISE EXCEPTION 'order % was not saved', saved_order USING ERRCODE = 'unique_violation';
    END IF;
    -- save_orders writes the first movement of a single order. A lost chargeback has two: a refund and a void.
    FOR i IN 2 .. coalesce(cardinality(movements_order_id), 0) LOOP
        INSERT INTO movements (merchant_id, order_id, kind, reference, movement_id, amount, created_at)
            VALUES (merchant, saved_order, movements_kind[i], movements_reference[i], movements_movement_id[i],
                movements_amount[i], movements_created_at[i]);
    END LOOP;
    FOR r IN SELECT * FROM json_to_recordset(installments) AS n (number smallint, due_on date) LOOP
        UPDATE installments p SET due_on = r.due_on WHERE p.merchant_id = merchant AND p.order_id = saved_order
            AND p.number = r.number AND p.due_on <> r.due_on;
    END LOOP;
    FOR r IN SELECT * FROM json_to_recordset(claims_disputes) AS n (dispute_id uuid, kind text, reason text, status text,
        amount bigint, withheld bigint, opened_by text, opened_at timestamptz, respond_by timestamptz, reminded boolean,
        submitted_at timestamptz, decided_at timestamptz, appeal_by timestamptz, final boolean, appealed_by text,
        appealed_at timestamptz, closed_at timestamptz, outcome text, movement_id uuid, release_id uuid, charge_id uuid,
        reference text, due_at timestamptz)
    LOOP
        INSERT INTO disputes (merchant_id, dispute_id, order_id, kind, reason, status, amount, withheld, opened_by, opened_at,
            respond_by, reminded, submitted_at, decided_at, appeal_by, final, appealed_by, appealed_at, closed_at, outcome,
            movement_id, release_id, charge_id, reference, due_at)
            VALUES (merchant, r.dispute_id, saved_order, r.kind, r.reason, r.status, r.amount, r.withheld, r.opened_by,
                r.opened_at, r.respond_by, r.reminded, r.submitted_at, r.decided_at, r.appeal_by, r.final, r.appealed_by,
                r.appealed_at, r.closed_at, r.outcome, r.movement_id, r.release_id, r.charge_id, r.reference, r.due_at)
            ON CONFLICT (merchant_id, dispute_id) DO UPDATE SET status = excluded.status, withheld = excluded.withheld,
                reminded = excluded.reminded, submitted_at = excluded.submitted_at, decided_at = excluded.decided_at,
                appeal_by = excluded.appeal_by, final = excluded.final, appealed_by = excluded.appealed_by,
                appealed_at = excluded.appealed_at, closed_at = excluded.closed_at, outcome = excluded.outcome,
                movement_id = excluded.movement_id, release_id = excluded.release_id, due_at = excluded.due_at;
    END LOOP;
    FOR r IN SELECT * FROM json_to_recordset(claims_evidence) AS n (dispute_id uuid, evidence_id uuid, party text, text bytea,
        at timestamptz, send_at timestamptz)
    LOOP
        INSERT INTO dispute_evidence (merchant_id, dispute_id, evidence_id, order_id, party, text, at, send_at)
            VALUES (merchant, r.dispute_id, r.evidence_id, saved_order, r.party, r.text, r.at, r.send_at);
    END LOOP;
    FOR r IN SELECT * FROM json_to_recordset(claims_returned) AS n (return_id uuid, carrier text, tracking text,
        noticed_at timestamptz, hold_until timestamptz, installment smallint, due_on date, ended_at timestamptz)
    LOOP
        INSERT INTO return_notices (merchant_id, order_id, return_id, carrier, tracking, noticed_at, hold_until, installment,
            due_on, ended_at) VALUES (merchant, saved_order, r.return_id, r.carrier, r.tracking, r.noticed_at, r.hold_until,
                r.installment, r.due_on, r.ended_at)
            ON CONFLICT (merchant_id, order_id, return_id) DO UPDATE SET ended_at = excluded.ended_at;
    END LOOP;
    RETURN saved;
END $$;

-- As in migration 0026, and in addition: the money that disputes withhold and release, and the counters of each day.
CREATE OR REPLACE FUNCTION settle_movements(merchant uuid, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    held settlements%ROWTYPE;
    published bigint;
    later bigint;
    added bigint;
    added_net bigint;
    added_moved bigint;
BEGIN
    SELECT * INTO held FROM settlements s WHERE s.merchant_id = merchant FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    SELECT least(f.last_position, held.position + most) INTO published FROM feeds f WHERE f.merchant_id = merchant;
    SELECT min(f.position) INTO later FROM feed f JOIN events e ON e.merchant_id = merchant AND e.order_id = f.order_id
            AND e.sequence = f.sequence
        WHERE f.merchant_id = merchant AND f.position > held.position AND f.position <= published
            AND e.type IN ('capture.completed', 'refund.completed', 'dispute.opened', 'dispute.closed')
            AND e.created_at >= coalesce(held.close_at, '-infinity');
    published := coalesce(later - 1, published, held.position);
    IF published = held.position THEN
        RETURN 0;
    END IF;
    INSERT INTO settlement_lines (merchant_id, number, type, cause, order_id, reference, gross, fee, net, currency, at,
        sequence)
        SELECT merchant, held.lines + row_number() OVER (ORDER BY n.position, n.first),
            CASE n.posting WHEN 'merchant_fee' THEN 'fee' WHEN 'merchant_fee_returned' THEN 'fee_returned'
                ELSE n.posting END,
            n.cause, n.order_id, n.reference, CASE WHEN n.is_fee THEN 0 ELSE n.net END,
            CASE WHEN n.is_fee THEN n.net ELSE 0 END, n.net, n.currency, n.at, n.position
        FROM (
            SELECT f.position, f.order_id, e.reference, t.posting, t.cause, t.currency, min(t.number) AS first,
                min(t.created_at) AS at, t.posting IN ('merchant_fee', 'merchant_fee_returned') AS is_fee,
                sum(CASE WHEN t.credit = 'merchant_payable' THEN t.amount ELSE -t.amount END)::bigint AS net
            FROM feed f
                JOIN events e ON e.merchant_id = merchant AND e.order_id = f.order_id AND e.sequence = f.sequence
                LEFT JOIN movements m ON m.merchant_id = merchant AND m.order_id = f.order_id
                    AND m.kind = split_part(e.type, '.', 1) AND m.reference = e.reference
                LEFT JOIN disputes d ON d.merchant_id = merchant AND d.order_id = f.order_id
                    AND e.type IN ('dispute.opened', 'dispute.closed') AND d.dispute_id::text = e.reference
                JOIN transfers t ON t.merchant_id = merchant AND t.order_id = f.order_id
                    AND t.cause = CASE WHEN e.type = 'dispute.opened' THEN d.dispute_id WHEN e.type = 'dispute.closed' THEN d.release_id
                        ELSE m.movement_id END
            WHERE f.merchant_id = merchant AND f.position > held.position AND f.position <= published
                AND e.type IN ('capture.completed', 'refund.completed', 'dispute.opened', 'dispute.closed')
                AND (t.debit = 'merchant_payable' OR t.credit = 'merchant_payable')
            GROUP BY f.position, f.order_id, e.reference, t.posting, t.cause, t.currency
        ) n;
    SELECT count(*), coalesce(sum(l.net), 0),
            coalesce(sum(l.net) FILTER (WHERE l.type IN ('capture', 'refund', 'dispute_lost')), 0)
        INTO added, added_net, added_moved
        FROM settlement_lines l WHERE l.merchant_id = merchant AND l.number > held.lines;
    INSERT INTO settlement_days AS n (merchant_id, day, captures, disputes)
        SELECT merchant, (e.created_at AT TIME ZONE 'UTC')::date, count(*) FILTER (WHERE e.type = 'capture.completed'),
            count(*) FILTER (WHERE e.type = 'dispute.opened')
        FROM feed f JOIN events e ON e.merchant_id = merchant AND e.order_id = f.order_id AND e.sequence = f.sequence
        WHERE f.merchant_id = merchant AND f.position > held.position AND f.position <= published
            AND e.type IN ('capture.completed', 'dispute.opened')
        GROUP BY 2
        ON CONFLICT (merchant_id, day) DO UPDATE SET captures = n.captures + excluded.captures,
            disputes = n.disputes + excluded.disputes;
    UPDATE settlements s SET position = published, lines = held.lines + added, open_net = held.open_net + added_net,
        open_moved = held.open_moved + added_moved WHERE s.merchant_id = merchant;
    RETURN published - held.position;
END $$;

-- close_batch waits for the lines of these events too.
DO $$
BEGIN
    EXECUTE replace(pg_get_functiondef('close_batch'::regproc), '(''capture.completed'', ''refund.completed'')',
        '(''capture.completed'', ''refund.completed'', ''dispute.opened'', ''dispute.closed'')');
END $$;

GRANT SELECT, INSERT, UPDATE ON disputes, dispute_evidence, return_notices, settlement_days TO cuota_app;
-- UPDATE: a change of keys encrypts the files anew.
GRANT SELECT, INSERT, UPDATE, DELETE ON dispute_files TO cuota_app;
REVOKE ALL ON FUNCTION save_claims FROM PUBLIC;
GRANT EXECUTE ON FUNCTION save_claims TO cuota_app;
