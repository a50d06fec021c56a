"""Deliveries that the retention job has deleted: which events may lack some, and how a replay adds them again.

The job deletes a delivered delivery with its last attempt (db/privacy/retention.py). For each merchant, it remembers one time: of
the events before this time, deliveries may be missing; of later events, all are there. The event and its body stay.
"""

from __future__ import annotations

from cuota.db.webhook.events import AND_CALLBACK

TERM = "deliveries"
"""The period of the table `retention` whose time is the merchant's time."""

# The condition for an event `e` of which deliveries may be missing. It is null, which is not true, if nothing was deleted yet.
MAY_LACK = f"""e.created_at < (SELECT r.at FROM retention r WHERE r.merchant_id = $1 AND r.term = '{TERM}')"""
# Adds the missing deliveries of old events, to the receivers that these events had: endpoints that were registered when the event
# happened and still are, and the order's own address. A delivery that is there stays as it is. So an event that has lost none
# gets no other receiver.
RESTORE = f"""WITH known AS MATERIALIZED (
    SELECT w.endpoint_id, w.url, w.created_at FROM webhook_endpoints w WHERE w.merchant_id = $1 AND w.state <> 'deleted'
    ORDER BY w.endpoint_id FOR SHARE
)
INSERT INTO deliveries
    (merchant_id, order_id, sequence, receiver, position, url, host, state, try_at, created_at)
    SELECT $1, n.order_id, n.sequence, r.receiver, n.position, r.url, split_part(r.url, '/', 3), 'pending', $2, $2
    FROM feed n JOIN events e ON e.merchant_id = $1 AND e.order_id = n.order_id AND e.sequence = n.sequence
    CROSS JOIN LATERAL (
        SELECT k.endpoint_id AS receiver, k.url FROM known k WHERE k.created_at <= e.created_at
        {AND_CALLBACK}
    ) r
    WHERE n.merchant_id = $1 AND n.position > $3 AND n.position <= $5 AND {MAY_LACK}
    ORDER BY n.order_id, r.receiver, n.sequence ON CONFLICT DO NOTHING RETURNING 1"""
