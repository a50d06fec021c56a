"""Finds the row that caused the transfers of an event which moves a merchant's money. Migration 0057 does the same in a function."""

from __future__ import annotations


def moved_by(events: str) -> str:
    """Return a part of FROM: the rows of `events` whose event moves money, with its `reference` and `cause`.

    `events` is a query in parentheses with the columns order_id and sequence. `cause` is the id of the movement or dispute that caused
    the transfers. An order may have thousands of movements. Therefore OFFSET 0 stops the planner from joining the
    transfers before it knows the cause, and LIMIT stops it from joining all events of the order. With statistics that
    are missing or old, it would otherwise read all transfers, movements and events of the order for each event.
    """
    return f"""(
        SELECT n.*, e.reference, CASE e.type WHEN 'dispute.opened' THEN d.dispute_id WHEN 'dispute.closed' THEN d.release_id
            ELSE m.movement_id END AS cause
        FROM {events} n
            CROSS JOIN LATERAL (SELECT v.type, v.reference FROM events v WHERE v.merchant_id = $1
                AND v.order_id = n.order_id AND v.sequence = n.sequence LIMIT 1) e
            LEFT JOIN LATERAL (SELECT i.movement_id FROM movements i WHERE i.merchant_id = $1 AND i.order_id = n.order_id
                AND i.kind = split_part(e.type, '.', 1) AND i.reference = e.reference LIMIT 1) m ON true
            LEFT JOIN disputes d ON d.merchant_id = $1 AND d.order_id = n.order_id
                AND e.type IN ('dispute.opened', 'dispute.closed') AND d.dispute_id::text = e.reference
        WHERE e.type IN ('capture.completed', 'refund.completed', 'dispute.opened', 'dispute.closed') OFFSET 0
    )"""
