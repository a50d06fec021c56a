-- Whether a message is claimed with the texts or with the mails. Until now, each claim determined this for every due message of the
-- merchant: while a mail server was down, each claim of texts read all the mails that waited.
ALTER TABLE messages ADD COLUMN IF NOT EXISTS by_text boolean NOT NULL DEFAULT false;
UPDATE messages SET by_text = true WHERE try_at IS NOT NULL AND kind IN ('review_approved', 'review_declined');
UPDATE messages m SET by_text = true FROM plans q WHERE q.merchant_id = m.merchant_id AND q.order_id = m.order_id
    AND m.try_at IS NOT NULL AND m.kind NOT IN ('declined', 'review_approved', 'review_declined')
    AND (q.payer ->> 'email') IS NULL;

-- A claim reads the due messages of one merchant and one channel. The claims of the previous release use this index too. Writes of
-- messages wait while the index is built. To avoid the wait on a large table, add the column and create the index before the upgrade
-- (CHANGELOG.md).
CREATE INDEX IF NOT EXISTS messages_to_send ON messages (by_text, merchant_id, try_at) WHERE try_at IS NOT NULL;
DROP INDEX messages_due;  -- the previous release also finds its rows by the new index

-- As in 0047, but a message has its channel. The parameters and the result are the same, so the previous release calls this function too.
CREATE OR REPLACE FUNCTION save_orders(
    merchant uuid,
    -- The orders as they become. `orders_version` is the version that was read.
    orders_order_id uuid[], orders_version integer[], orders_transfers integer[], orders_events integer[],
    orders_status text[], orders_captured bigint[], orders_voided bigint[], orders_refunded bigint[],
    orders_fee_returned bigint[], orders_authorization_expires_at timestamptz[], orders_lapsed boolean[],
    orders_warned smallint[], orders_card_failures smallint[], orders_charging uuid[],
    orders_charging_since timestamptz[], orders_collect_at timestamptz[], orders_due_at timestamptz[],
    movements_order_id uuid[], movements_kind text[], movements_reference text[], movements_movement_id uuid[],
    movements_amount bigint[], movements_created_at timestamptz[],
    transfers_order_id uuid[], transfers_number integer[], transfers_posting text[], transfers_cause uuid[],
    transfers_debit text[], transfers_credit text[], transfers_amount bigint[], transfers_currency text[],
    transfers_created_at timestamptz[],
    events_order_id uuid[], events_sequence integer[], events_type text[], events_operation text[],
    events_amount bigint[], events_reference text[], events_success boolean[], events_message text[],
    events_created_at timestamptz[],
    installments json, card_refunds json, messages json, charges json, charges_settled json, card_refunds_settled json,
    plans json, plan_cards json, decisions json, signals json,
    -- The lease on an Idempotency-Key, and the answer to store under it; null without a key.
    answer_key text, answer_lease uuid, answer_status smallint, answer_body bytea
) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    saved uuid[] := '{}';
    r record;
    -- The values of the first order, copied because Citus 13.2 crashes when an UPDATE assigns an element of an array.
    one_transfers integer := orders_transfers[1];
    one_events integer := orders_events[1];
    one_status text := orders_status[1];
    one_captured bigint := orders_captured[1];
    one_voided bigint := orders_voided[1];
    one_refunded bigint := orders_refunded[1];
    one_fee_returned bigint := orders_fee_returned[1];
    one_authorization_expires_at timestamptz := orders_authorization_expires_at[1];
    one_lapsed boolean := orders_lapsed[1];
    one_warned smallint := orders_warned[1];
    one_card_failures smallint := orders_card_failures[1];
    one_charging uuid := orders_charging[1];
    one_charging_since timestamptz := orders_charging_since[1];
    one_collect_at timestamptz := orders_collect_at[1];
    one_due_at timestamptz := orders_due_at[1];
BEGIN
    IF answer_key IS NOT NULL THEN
        PERFORM 1 FROM idempotency_keys k WHERE k.merchant_id = merchant AND k.key = answer_key
            AND k.lease = answer_lease AND k.status IS NULL FOR UPDATE;
        IF NOT FOUND THEN
            RETURN saved;
        END IF;
    END IF;

    IF cardinality(orders_order_id) = 1 THEN
        UPDATE orders o SET version = o.version + 1, transfers = one_transfers, events = one_events, status =
            one_status, captured = one_captured, voided = one_voided, refunded = one_refunded, fee_returned =
            one_fee_returned, authorization_expires_at = one_authorization_expires_at, lapsed = one_lapsed, warned =
            one_warned, card_failures = one_card_failures, charging = one_charging, charging_since = one_charging_since,
            collect_at = one_collect_at, due_at = one_due_at
            WHERE o.merchant_id = merchant AND o.order_id = orders_order_id[1] AND o.version = orders_version[1];
        IF NOT FOUND THEN
            RETURN saved;
        END IF;
        saved := orders_order_id;
        IF movements_order_id IS NOT NULL THEN
            INSERT INTO movements (merchant_id, order_id, kind, reference, movement_id, amount, created_at)
                VALUES (merchant, orders_order_id[1], movements_kind[1], movements_reference[1],
                    movements_movement_id[1], movements_amount[1], movements_created_at[1]);
        END IF;
        FOR i IN 1 .. coalesce(cardinality(transfers_order_id), 0) LOOP
            INSERT INTO transfers (merchant_id, order_id, number, posting, cause, debit, credit, amount, currency,
                created_at) VALUES (merchant, orders_order_id[1], transfers_number[i], transfers_posting[i],
                    transfers_cause[i], transfers_debit[i], transfers_credit[i], transfers_amount[i],
                    transfers_currency[i], transfers_created_at[i]);
        END LOOP;
        FOR i IN 1 .. coalesce(cardinality(events_order_id), 0) LOOP
            INSERT INTO events (merchant_id, order_id, sequence, type, operation, amount, reference, success, message,
                created_at) VALUES (merchant, orders_order_id[1], events_sequence[i], events_type[i],
                    events_operation[i], events_amount[i], events_reference[i], events_success[i], events_message[i],
                    events_created_at[i]);
            -- Events that are not in the feed yet. A background job publishes them.
            INSERT INTO outbox (merchant_id, order_id, sequence)
                VALUES (merchant, orders_order_id[1], events_sequence[i]);
        END LOOP;
    ELSE
        FOR r IN UPDATE orders o SET version = o.version + 1, transfers = n.transfers, events = n.events,
            status = n.status, captured = n.captured, voided = n.voided, refunded = n.refunded,
            fee_returned = n.fee_returned, authorization_expires_at = n.authorization_expires_at, lapsed = n.lapsed,
            warned = n.warned, card_failures = n.card_failures, charging = n.charging,
            charging_since = n.charging_since, collect_at = n.collect_at, due_at = n.due_at
            FROM unnest(orders_order_id, orders_version, orders_transfers, orders_events, orders_status,
                orders_captured, orders_voided, orders_refunded, orders_fee_returned, orders_authorization_expires_at,
                orders_lapsed, orders_warned, orders_card_failures, orders_charging, orders_charging_since,
                orders_collect_at, orders_due_at)
                AS n (order_id, version, transfers, events, status, captured, voided, refunded, fee_returned,
                authorization_expires_at, lapsed, warned, card_failures, charging, charging_since, collect_at, due_at)
            WHERE o.merchant_id = merchant AND o.order_id = n.order_id AND o.version = n.version
            RETURNING o.order_id
        LOOP
            saved := saved || r.order_id;
        END LOOP;
        IF saved = '{}' THEN
            RETURN saved;
        END IF;
        IF movements_order_id IS NOT NULL THEN
            INSERT INTO movements (merchant_id, order_id, kind, reference, movement_id, amount, created_at)
                SELECT merchant, n.* FROM unnest(movements_order_id, movements_kind, movements_reference,
                    movements_movement_id, movements_amount, movements_created_at)
                    AS n (order_id, kind, reference, movement_id, amount, created_at)
                WHERE n.order_id = ANY (saved);
        END IF;
        IF transfers_order_id IS NOT NULL THEN
            INSERT INTO transfers (merchant_id, order_id, number, posting, cause, debit, credit, amount, currency,
                created_at) SELECT merchant, n.* FROM unnest(transfers_order_id, transfers_number, transfers_posting,
                    transfers_cause, transfers_debit, transfers_credit, transfers_amount, transfers_currency,
                    transfers_created_at)
                    AS n (order_id, number, posting, cause, debit, credit, amount, currency, created_at)
                WHERE n.order_id = ANY (saved);
        END IF;
        IF events_order_id IS NOT NULL THEN
            INSERT INTO events (merchant_id, order_id, sequence, type, operation, amount, reference, success, message,
                created_at) SELECT merchant, n.* FROM unnest(events_order_id, events_sequence, events_type,
                    events_operation, events_amount, events_reference, events_success, events_message,
                    events_created_at)
                    AS n (order_id, sequence, type, operation, amount, reference, success, message, created_at)
                WHERE n.order_id = ANY (saved);
            INSERT INTO outbox (merchant_id, order_id, sequence)
                SELECT merchant, n.* FROM unnest(events_order_id, events_sequence) AS n (order_id, sequence)
                WHERE n.order_id = ANY (saved);
        END IF;
    END IF;

    -- A consumer that tries again after a declined card makes a new agreement, which replaces the old one.
    IF plans IS NOT NULL THEN
        FOR r IN SELECT * FROM json_to_recordset(plans) AS n (nth integer, consumer_id uuid, time_zone text,
            first_day date, agreement text, agreement_hash text, agreed_at timestamptz, payer text, browser bytea,
            card_hash bytea) WHERE orders_order_id[nth] = ANY (saved)
        LOOP
            INSERT INTO plans (merchant_id, order_id, consumer_id, time_zone, first_day, agreement, agreement_hash,
                agreed_at, payer, browser, card_hash) VALUES (merchant, orders_order_id[r.nth], r.consumer_id,
                    r.time_zone, r.first_day, r.agreement, r.agreement_hash, r.agreed_at, r.payer::json, r.browser,
                    r.card_hash)
                ON CONFLICT (merchant_id, order_id) DO UPDATE SET consumer_id = excluded.consumer_id,
                    time_zone = excluded.time_zone, first_day = excluded.first_day, agreement = excluded.agreement,
                    agreement_hash = excluded.agreement_hash, agreed_at = excluded.agreed_at,
                    payer = excluded.payer, browser = excluded.browser, card_hash = excluded.card_hash;
        END LOOP;
    END IF;
    -- The card that pays from now on.
    IF plan_cards IS NOT NULL THEN
        FOR r IN SELECT * FROM json_to_recordset(plan_cards) AS n (nth integer, card_token text, card_brand text,
            card_last4 text, card_hash bytea) WHERE orders_order_id[nth] = ANY (saved)
        LOOP
            UPDATE plans p SET card_token = r.card_token, card_brand = r.card_brand, card_last4 = r.card_last4,
                card_hash = r.card_hash WHERE p.merchant_id = merchant AND p.order_id = orders_order_id[r.nth];
        END LOOP;
    END IF;
    IF charges_settled IS NOT NULL THEN
        FOR r IN SELECT * FROM json_to_recordset(charges_settled) AS n (nth integer, charge_id uuid, state text,
            reason text, settled_at timestamptz) WHERE orders_order_id[nth] = ANY (saved)
        LOOP
            UPDATE charges c SET state = r.state, reason = r.reason, settled_at = r.settled_at
                WHERE c.merchant_id = merchant AND c.order_id = orders_order_id[r.nth] AND c.charge_id = r.charge_id;
        END LOOP;
    END IF;
    IF charges IS NOT NULL THEN
        INSERT INTO charges (merchant_id, order_id, charge_id, installment, amount, card_token, card_brand, card_last4,
            origin, state, created_at)
            SELECT merchant, orders_order_id[n.nth], n.charge_id, n.installment, n.amount, n.card_token, n.card_brand,
                n.card_last4, n.origin, n.state, n.created_at
            FROM json_to_recordset(charges) AS n (nth integer, charge_id uuid, installment smallint, amount bigint,
                card_token text, card_brand text, card_last4 text, origin text, state text, created_at timestamptz)
            WHERE orders_order_id[n.nth] = ANY (saved);
    END IF;
    -- New installments, or changed ones. An installment keeps its number and its day.
    IF installments IS NOT NULL THEN
        INSERT INTO installments (merchant_id, order_id, number, due_on, amount, fee, charge_id, returned, charge_at,
            remind_at, failures)
            SELECT merchant, orders_order_id[n.nth], n.number, n.due_on, n.amount, n.fee, n.charge_id, n.returned,
                n.charge_at, n.remind_at, n.failures
            FROM json_to_recordset(installments) AS n (nth integer, number smallint, due_on date, amount bigint, fee bigint,
                charge_id uuid, returned bigint, charge_at timestamptz, remind_at timestamptz, failures smallint)
            WHERE orders_order_id[n.nth] = ANY (saved)
            ON CONFLICT (merchant_id, order_id, number) DO UPDATE SET amount = excluded.amount, fee = excluded.fee,
                charge_id = excluded.charge_id, returned = excluded.returned, charge_at = excluded.charge_at, remind_at =
                excluded.remind_at, failures = excluded.failures;
    END IF;
    IF card_refunds IS NOT NULL THEN
        INSERT INTO card_refunds (merchant_id, order_id, card_refund_id, charge_id, amount, state, created_at, try_at)
            SELECT merchant, orders_order_id[n.nth], n.card_refund_id, n.charge_id, n.amount, n.state, n.created_at, n.try_at
            FROM json_to_recordset(card_refunds) AS n (nth integer, card_refund_id uuid, charge_id uuid, amount bigint,
                state text, created_at timestamptz, try_at timestamptz)
            WHERE orders_order_id[n.nth] = ANY (saved);
    END IF;
    IF card_refunds_settled IS NOT NULL THEN
        FOR r IN SELECT * FROM json_to_recordset(card_refunds_settled) AS n (nth integer, card_refund_id uuid,
            state text, reason text, settled_at timestamptz) WHERE orders_order_id[nth] = ANY (saved)
        LOOP
            UPDATE card_refunds c SET state = r.state, reason = r.reason, settled_at = r.settled_at, try_at = NULL,
                tries = c.tries + 1 WHERE c.merchant_id = merchant AND c.order_id = orders_order_id[r.nth]
                AND c.card_refund_id = r.card_refund_id;
        END LOOP;
    END IF;
    -- Messages to the consumer. A background job sends them: those to a payer without a mail address by text, and the answers that a
    -- consumer waits for, too (AWAITED in core/plan/notice.py). A letter about a declined order has no plan, and is not sent by text.
    IF messages IS NOT NULL THEN
        INSERT INTO messages (merchant_id, order_id, message_id, kind, installment, amount, day, try_at, state, created_at,
            standing, by_text)
            SELECT merchant, orders_order_id[n.nth], n.message_id, n.kind, n.installment, n.amount, n.day, n.try_at,
                n.state, n.created_at, n.standing::json,
                n.kind IN ('review_approved', 'review_declined') OR (n.kind <> 'declined' AND (SELECT q.payer ->> 'email'
                    FROM plans q WHERE q.merchant_id = merchant AND q.order_id = orders_order_id[n.nth]) IS NULL)
            FROM json_to_recordset(messages) AS n (nth integer, message_id uuid, kind text, installment smallint, amount
                bigint, day date, try_at timestamptz, state text, created_at timestamptz, standing text)
            WHERE orders_order_id[n.nth] = ANY (saved);
    END IF;
    IF decisions IS NOT NULL THEN
        INSERT INTO decisions (merchant_id, order_id, decided_at, approved, reasons, policy_version, inputs, decision_id,
            consumer_id, score, credit_limit, inputs_hash)
            SELECT merchant, orders_order_id[n.nth], n.decided_at, n.approved, n.reasons, n.policy_version, n.inputs::json,
                n.decision_id, n.consumer_id, n.score, n.credit_limit, n.inputs_hash
            FROM json_to_recordset(decisions) AS n (nth integer, decided_at timestamptz, approved boolean, reasons text[],
                policy_version text, inputs text, decision_id uuid, consumer_id uuid, score integer, credit_limit bigint,
                inputs_hash bytea)
            WHERE orders_order_id[n.nth] = ANY (saved);
    END IF;
    -- If the consumer tries the same order again with the same card, phone, address or browser, it counts once.
    IF signals IS NOT NULL THEN
        INSERT INTO signals (merchant_id, order_id, kind, value_hash, at)
            SELECT merchant, orders_order_id[n.nth], n.kind, n.value_hash, n.at
            FROM json_to_recordset(signals) AS n (nth integer, kind text, value_hash bytea, at timestamptz)
            WHERE orders_order_id[n.nth] = ANY (saved)
            ON CONFLICT (merchant_id, order_id, kind, value_hash) DO NOTHING;
    END IF;

    -- The answer is written last, and only if the order was.
    IF answer_key IS NOT NULL THEN
        UPDATE idempotency_keys k SET status = answer_status, body = answer_body
            WHERE k.merchant_id = merchant AND k.key = answer_key AND k.lease = answer_lease AND k.status IS NULL;
    END IF;
    RETURN saved;
END $$;
