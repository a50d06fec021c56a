"""Replays deliveries on request, and parks the deliveries of a receiver that was deleted.

Each statement locks its deliveries in the order of their key, so that no two statements deadlock.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from cuota.db.deadlock import PAUSE_SECONDS
from cuota.db.pool import CONNECT_SECONDS, STATEMENT_SECONDS, WAIT_SECONDS
from cuota.db.session import Session
from cuota.db.webhook import deleted_deliveries, endpoints
from cuota.db.webhook.deliveries import LEASE
from cuota.db.webhook.events import OWN_ADDRESS

# A replay does not touch deliveries that a worker has claimed. A worker may claim a row after the replay read its `now`, while the
# replay waits for a session or for a locked row. Such a wait is never longer than this. After a deadlock, a statement runs twice.
CLAIMED_MEANWHILE = timedelta(seconds=15)
assert (
    CLAIMED_MEANWHILE.total_seconds() > WAIT_SECONDS + CONNECT_SECONDS + PAUSE_SECONDS + 2 * STATEMENT_SECONDS
)
LAST = 2**62
POSITIONS_AT_ONCE = 500

# Replays events. A replay uses the endpoint's current URL and skips deleted endpoints. It skips deliveries that a worker may have
# claimed at this moment, and makes deliveries that wait for a retry due at once. `LEAST` has the same purpose as in `_RECORD`.
# Like publishing (events.py), a replay locks the endpoints, so that no change of an endpoint is missed.
# Removed endpoints are not locked, because their number has no limit. No index can be used for a CASE, so the deliveries are found by
# their events, and not by their receivers.
_AGAIN = f"""WITH known AS MATERIALIZED (
    SELECT w.endpoint_id, w.url FROM webhook_endpoints w WHERE w.merchant_id = $1 AND w.state <> 'deleted'
    ORDER BY w.endpoint_id FOR SHARE
), held AS MATERIALIZED (
    SELECT d.order_id, d.receiver, d.sequence FROM feed f JOIN deliveries d
        ON d.merchant_id = $1 AND d.order_id = f.order_id AND d.sequence = f.sequence
    WHERE f.merchant_id = $1 AND f.position > $4 AND f.position <= $5 AND LEAST(f.position, $5) = f.position
        AND ($3::uuid IS NULL OR d.receiver = $3)
        AND NOT (d.state = 'pending' AND d.tries > d.failed AND d.try_at > $2 AND d.try_at <= $6)
        AND CASE d.receiver WHEN '{OWN_ADDRESS}' THEN true ELSE d.receiver = ANY (ARRAY(SELECT k.endpoint_id FROM known k)) END
    ORDER BY d.order_id, d.receiver, d.sequence FOR NO KEY UPDATE OF d
)
UPDATE deliveries d SET state = 'pending', tries = 0, failed = 0, try_at = $2, settled_at = NULL,
    claimed_by = NULL, (url, host) = (SELECT t.url, split_part(t.url, '/', 3) FROM (SELECT COALESCE((SELECT k.url
        FROM known k WHERE k.endpoint_id = d.receiver), d.url) AS url) t)
    FROM held h WHERE d.merchant_id = $1 AND d.order_id = h.order_id AND d.receiver = h.receiver
        AND d.sequence = h.sequence RETURNING 1"""
# Adds deliveries for events that happened before the endpoint was registered.
_ADDRESS = """WITH known AS MATERIALIZED (
    SELECT w.endpoint_id, w.url FROM webhook_endpoints w
    WHERE w.merchant_id = $1 AND w.endpoint_id = $3 AND w.state <> 'deleted' FOR SHARE
)
INSERT INTO deliveries
    (merchant_id, order_id, sequence, receiver, position, url, host, state, try_at, created_at)
    SELECT $1, f.order_id, f.sequence, k.endpoint_id, f.position, k.url, split_part(k.url, '/', 3), 'pending', $2, $2
    FROM feed f CROSS JOIN known k
    WHERE f.merchant_id = $1 AND f.position > $4 AND f.position <= $5
    ORDER BY f.order_id, f.sequence ON CONFLICT DO NOTHING RETURNING 1"""
# Sends the deliveries that were parked in a time, at most $4 of each receiver, and counts those that it found by the index
# deliveries_parked. Another replay may send some of them while this one waits for their rows.
_PARKED = f"""WITH known AS MATERIALIZED (
    SELECT w.endpoint_id, w.url FROM webhook_endpoints w WHERE w.merchant_id = $1 AND w.state <> 'deleted'
    ORDER BY w.endpoint_id FOR SHARE
), first AS MATERIALIZED (
    SELECT n.order_id, n.receiver, n.sequence
    FROM (SELECT k.endpoint_id AS receiver FROM known k UNION ALL SELECT '{OWN_ADDRESS}'::uuid) r CROSS JOIN LATERAL (
        SELECT p.order_id, p.receiver, p.sequence FROM deliveries p WHERE p.merchant_id = $1 AND p.receiver = r.receiver
            AND p.state = 'parked' AND p.settled_at > $3 AND p.settled_at <= $2
        ORDER BY p.receiver, p.settled_at, p.position LIMIT $4) n
), held AS MATERIALIZED (
    SELECT d.order_id, d.receiver, d.sequence
    FROM (SELECT order_id, receiver, sequence FROM first ORDER BY order_id, receiver, sequence) f CROSS JOIN LATERAL (
        SELECT d.order_id, d.receiver, d.sequence FROM deliveries d WHERE d.merchant_id = $1 AND d.order_id = f.order_id
            AND d.receiver = f.receiver AND d.sequence = f.sequence AND d.state = 'parked' LIMIT 1 FOR NO KEY UPDATE) d
), sent AS (
    UPDATE deliveries d SET state = 'pending', tries = 0, failed = 0, try_at = $2, settled_at = NULL, (url, host) = (
            SELECT t.url, split_part(t.url, '/', 3) FROM (SELECT COALESCE((SELECT k.url FROM known k
                WHERE k.endpoint_id = d.receiver), d.url) AS url) t)
        FROM held h WHERE d.merchant_id = $1 AND d.order_id = h.order_id AND d.receiver = h.receiver
            AND d.sequence = h.sequence
)
SELECT count(*) AS found FROM first"""
_PARK = f"""WITH {endpoints.FIRST_PENDING}
UPDATE deliveries d SET state = 'parked', try_at = NULL, settled_at = $3, claimed_by = NULL
    FROM held h WHERE d.merchant_id = $1 AND d.order_id = h.order_id AND d.receiver = $2 AND d.sequence = h.sequence
    RETURNING 1"""


async def send_again(
    session: Session,
    merchant_id: UUID,
    now: datetime,
    *,
    receiver: UUID | None = None,
    after: int = 0,
    until: int = LAST,
) -> int:
    """Replay the events of a feed whose position is greater than `after` and at most `until`. Return how many will be sent.

    A caller splits a longer range into ranges of POSITIONS_AT_ONCE positions, so that each statement ends in time.

    Without `receiver`, each event goes again to all of its receivers, also if the retention job has deleted a delivery. With
    `receiver`, the events go only to that endpoint, and they include events that happened before the endpoint was registered.
    """
    asked = (merchant_id, now, receiver, after, until)
    rows = await session.fetch(_AGAIN, *asked, now + LEASE + CLAIMED_MEANWHILE)
    # A later statement: it sees what the retention job deleted while the first one waited.
    if receiver is None:
        rows += await session.fetch(deleted_deliveries.RESTORE, merchant_id, now, after, OWN_ADDRESS, until)
    else:
        rows += await session.fetch(_ADDRESS, *asked)
    return len(rows)


async def send_parked(session: Session, merchant_id: UUID, now: datetime, since: datetime) -> int:
    """Send again some deliveries that were parked after `since`, until `now`. Return how many there were; 0 when there are no more.

    Another call may have sent some of them at the same moment.
    """
    row = await session.fetchrow(_PARKED, merchant_id, now, since, POSITIONS_AT_ONCE)
    return 0 if row is None else int(row["found"])


async def park(session: Session, merchant_id: UUID, receiver: UUID, now: datetime) -> int:
    """Park the first `endpoints.AT_ONCE` pending deliveries of a removed endpoint. Return how many were parked.

    Call this in the transaction that removes the endpoint. Nothing claims the rest of a longer queue any more, and a job parks it.
    """
    return len(await session.fetch(_PARK, merchant_id, receiver, now, endpoints.AT_ONCE))
