"""Finds the transfers of the events that move a merchant's money. Migration 0057 does the same in a function."""

from __future__ import annotations


def moved_by(events: str) -> str:
    """Return a part of FROM: the transfers of a merchant's money that `events` caused, with the `position` and `reference` of the event.

    `events` is a query in parentheses with the columns order_id, sequence and position. An order may have thousands of
    movements, and no index contains the causes of transfers. Therefore the transfers of each order are read once, and
    each finds its event in a JSON object, by its cause. LIMIT and OFFSET 0 stop the planner from joining all events,
    movements and transfers of the order with each other, which it does if its statistics are missing or old.
    """
    return f"""(
        SELECT t.*, (t.event ->> 0)::bigint AS position, t.event ->> 1 AS reference
        FROM (
            SELECT c.order_id, jsonb_object_agg(c.cause, jsonb_build_array(c.position, c.reference)) AS events
            FROM (
                SELECT n.order_id, n.position, e.reference,
                    CASE e.type WHEN 'dispute.opened' THEN d.dispute_id WHEN 'dispute.closed' THEN d.release_id
                        ELSE m.movement_id END AS cause
                FROM {events} n
                    CROSS JOIN LATERAL (SELECT v.type, v.reference FROM events v WHERE v.merchant_id = $1
                        AND v.order_id = n.order_id AND v.sequence = n.sequence LIMIT 1) e
                    LEFT JOIN LATERAL (SELECT i.movement_id FROM movements i WHERE i.merchant_id = $1
                        AND i.order_id = n.order_id AND i.kind = split_part(e.type, '.', 1)
                        AND i.reference = e.reference LIMIT 1) m ON true
                    LEFT JOIN disputes d ON d.merchant_id = $1 AND d.order_id = n.order_id
                        AND e.type IN ('dispute.opened', 'dispute.closed') AND d.dispute_id::text = e.reference
                WHERE e.type IN ('capture.completed', 'refund.completed', 'dispute.opened', 'dispute.closed') OFFSET 0
            ) c WHERE c.cause IS NOT NULL GROUP BY c.order_id
        ) o CROSS JOIN LATERAL (
            SELECT l.order_id, l.number, l.posting, l.cause, l.credit, l.amount, l.currency, l.created_at,
                o.events -> l.cause::text AS event
            FROM transfers l WHERE l.merchant_id = $1 AND l.order_id = o.order_id
                AND (l.debit = 'merchant_payable' OR l.credit = 'merchant_payable') OFFSET 0
        ) t WHERE t.event IS NOT NULL
    )"""
