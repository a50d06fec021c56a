-- Settlement lines of an order with very many captures, also while the planner has no statistics.

-- As in migration 0029, but the plan no longer depends on statistics. Without them, the planner believed that an order has one row
-- in each table, and read all transfers, movements and events of the order for each event. Now it finds each event by its key
-- (LIMIT 1), then its movement, and then the transfers (OFFSET 0 keeps this sequence).
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
            SELECT c.position, c.order_id, c.reference, t.posting, t.cause, t.currency, min(t.number) AS first,
                min(t.created_at) AS at, t.posting IN ('merchant_fee', 'merchant_fee_returned') AS is_fee,
                sum(CASE WHEN t.credit = 'merchant_payable' THEN t.amount ELSE -t.amount END)::bigint AS net
            FROM (
                SELECT f.position, f.order_id, e.reference,
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
            ) c
                JOIN transfers t ON t.merchant_id = merchant AND t.order_id = c.order_id AND t.cause = c.cause
            WHERE t.debit = 'merchant_payable' OR t.credit = 'merchant_payable'
            GROUP BY c.position, c.order_id, c.reference, t.posting, t.cause, t.currency
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
