-- Settlement lines of an order with very many captures, also while the planner has no statistics.

-- As in migration 0029, but the rows of an order are not joined with each other: without statistics the planner believed that an
-- order has one row in each table, and read all its transfers, movements and events for each event. Now each event is found by its
-- key, the transfers of an order are read once, and each transfer finds its event in a JSON object, by its cause. LIMIT and OFFSET 0
-- stop the planner from joining them.
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
    SELECT min(f.position) INTO later FROM feed f
            CROSS JOIN LATERAL (SELECT v.type, v.created_at FROM events v WHERE v.merchant_id = merchant
                AND v.order_id = f.order_id AND v.sequence = f.sequence LIMIT 1) e
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
            SELECT t.position, t.order_id, t.reference, t.posting, t.cause, t.currency, min(t.number) AS first,
                min(t.created_at) AS at, t.posting IN ('merchant_fee', 'merchant_fee_returned') AS is_fee,
                sum(CASE WHEN t.credit = 'merchant_payable' THEN t.amount ELSE -t.amount END)::bigint AS net
            FROM (
                SELECT t.*, (t.event ->> 0)::bigint AS position, t.event ->> 1 AS reference
                FROM (
                    SELECT c.order_id, jsonb_object_agg(c.cause, jsonb_build_array(c.position, c.reference)) AS events
                    FROM (
                        SELECT f.order_id, f.position, e.reference,
                            CASE e.type WHEN 'dispute.opened' THEN d.dispute_id WHEN 'dispute.closed' THEN d.release_id
                                ELSE m.movement_id END AS cause
                        FROM feed f
                            CROSS JOIN LATERAL (SELECT v.type, v.reference FROM events v WHERE v.merchant_id = merchant
                                AND v.order_id = f.order_id AND v.sequence = f.sequence LIMIT 1) e
                            LEFT JOIN LATERAL (SELECT i.movement_id FROM movements i WHERE i.merchant_id = merchant
                                AND i.order_id = f.order_id AND i.kind = split_part(e.type, '.', 1)
                                AND i.reference = e.reference LIMIT 1) m ON true
                            LEFT JOIN disputes d ON d.merchant_id = merchant AND d.order_id = f.order_id
                                AND e.type IN ('dispute.opened', 'dispute.closed') AND d.dispute_id::text = e.reference
                        WHERE f.merchant_id = merchant AND f.position > held.position AND f.position <= published
                            AND e.type IN ('capture.completed', 'refund.completed', 'dispute.opened', 'dispute.closed')
                        OFFSET 0
                    ) c WHERE c.cause IS NOT NULL GROUP BY c.order_id
                ) o CROSS JOIN LATERAL (
                    SELECT l.order_id, l.number, l.posting, l.cause, l.credit, l.amount, l.currency, l.created_at,
                        o.events -> l.cause::text AS event
                    FROM transfers l WHERE l.merchant_id = merchant AND l.order_id = o.order_id
                        AND (l.debit = 'merchant_payable' OR l.credit = 'merchant_payable') OFFSET 0
                ) t WHERE t.event IS NOT NULL
            ) t GROUP BY t.position, t.order_id, t.reference, t.posting, t.cause, t.currency
        ) n;
    SELECT count(*), coalesce(sum(l.net), 0),
            coalesce(sum(l.net) FILTER (WHERE l.type IN ('capture', 'refund', 'dispute_lost')), 0)
        INTO added, added_net, added_moved
        FROM settlement_lines l WHERE l.merchant_id = merchant AND l.number > held.lines;
    INSERT INTO settlement_days AS n (merchant_id, day, captures, disputes)
        SELECT merchant, (e.created_at AT TIME ZONE 'UTC')::date, count(*) FILTER (WHERE e.type = 'capture.completed'),
            count(*) FILTER (WHERE e.type = 'dispute.opened')
        FROM feed f CROSS JOIN LATERAL (SELECT v.type, v.created_at FROM events v WHERE v.merchant_id = merchant
                AND v.order_id = f.order_id AND v.sequence = f.sequence LIMIT 1) e
        WHERE f.merchant_id = merchant AND f.position > held.position AND f.position <= published
            AND e.type IN ('capture.completed', 'dispute.opened')
        GROUP BY 2
        ON CONFLICT (merchant_id, day) DO UPDATE SET captures = n.captures + excluded.captures,
            disputes = n.disputes + excluded.disputes;
    UPDATE settlements s SET position = published, lines = held.lines + added, open_net = held.open_net + added_net,
        open_moved = held.open_moved + added_moved WHERE s.merchant_id = merchant;
    RETURN published - held.position;
END $$;
