"""Checks that each event waits in the outbox or is in the feed, that both have nothing else, and that a published event has its deliveries.

An event in neither is never sent, and its money never paid out. The feed has no gap: a gap shows that an event was removed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from uuid import UUID

from cuota.db.sandbox import clock
from cuota.db.session import Session
from cuota.db.webhook.deleted_deliveries import MAY_LACK
from cuota.db.webhook.events import AND_CALLBACK, OWN_ADDRESS

# Only events of this time are checked for lost deliveries, so that the check does not read all deliveries of a merchant.
RECENT = timedelta(days=30)
MOST = 1000

# Publishing moves an event in one statement, so this statement finds the event in one of the two tables.
_ASTRAY = """
SELECT e.order_id, e.sequence, e.type, f.position FROM events e
    LEFT JOIN feed f ON f.merchant_id = $1 AND f.order_id = e.order_id AND f.sequence = e.sequence
    LEFT JOIN outbox o ON o.merchant_id = $1 AND o.order_id = e.order_id AND o.sequence = e.sequence
WHERE e.merchant_id = $1 AND (f.position IS NULL) = (o.order_id IS NULL) LIMIT 1000
"""
# Rows of the feed and the outbox without an event. Each is an anti-join along the primary keys.
_EVENTLESS = """
SELECT f.order_id, f.sequence, f.position FROM feed f WHERE f.merchant_id = $1 AND NOT EXISTS (SELECT FROM events e
    WHERE e.merchant_id = $1 AND e.order_id = f.order_id AND e.sequence = f.sequence)
UNION ALL SELECT o.order_id, o.sequence, NULL FROM outbox o WHERE o.merchant_id = $1 AND NOT EXISTS (SELECT FROM events e
    WHERE e.merchant_id = $1 AND e.order_id = o.order_id AND e.sequence = o.sequence)
LIMIT 1000
"""
_NUMBERED = """SELECT n.last_position, (SELECT count(*) FROM feed f WHERE f.merchant_id = $1) AS published,
    (SELECT coalesce(max(f.position), 0) FROM feed f WHERE f.merchant_id = $1) AS last
FROM (SELECT coalesce(max(s.last_position), 0) AS last_position FROM feeds s WHERE s.merchant_id = $1) n"""
# Deliveries that the retention job has deleted are not lost. An endpoint that was registered shortly before an event may have missed
# it: the registration was perhaps not committed yet, or the clocks of two processes differ.
_LOST = f"""
SELECT e.order_id, e.sequence, e.type, r.url FROM events e
    JOIN feed n ON n.merchant_id = $1 AND n.order_id = e.order_id AND n.sequence = e.sequence
    CROSS JOIN LATERAL (
        SELECT w.endpoint_id AS receiver, w.url FROM webhook_endpoints w
            WHERE w.merchant_id = $1 AND w.state <> 'deleted' AND w.created_at < e.created_at - interval '1 hour'
        {AND_CALLBACK}
    ) r
WHERE e.merchant_id = $1 AND e.created_at > $2 AND ({MAY_LACK}) IS NOT TRUE
    AND NOT EXISTS (SELECT FROM deliveries d WHERE d.merchant_id = $1 AND d.order_id = e.order_id
        AND d.receiver = r.receiver AND d.sequence = e.sequence) LIMIT $3
"""


async def disagreements(session: Session, merchant_id: UUID) -> AsyncIterator[tuple[UUID, str, str]]:
    """Yield every event that disagrees, as (id of the order, payout or bank account, row, problem)."""
    for row in await session.fetch(_ASTRAY, merchant_id):
        name = f"events {row['sequence']}"
        if row["position"] is None:
            yield row["order_id"], name, f"{row['type']} is neither in the outbox nor in the feed"
        else:
            yield row["order_id"], name, f"{row['type']} is in the feed, but still in the outbox"
    for row in await session.fetch(_EVENTLESS, merchant_id):
        place = "in the outbox" if row["position"] is None else f"in the feed at {row['position']}"
        yield row["order_id"], f"events {row['sequence']}", f"is missing, but is {place}"
    feed = await session.fetchrow(_NUMBERED, merchant_id)
    assert feed is not None
    if not feed["last_position"] == feed["last"] == feed["published"]:
        problem = (
            f"ends at {feed['last_position']}, it has {feed['published']} events, the last at {feed['last']}"
        )
        yield merchant_id, "feed", problem
    since: datetime = (await clock.read(session)).now - RECENT
    for row in await session.fetch(_LOST, merchant_id, since, MOST, OWN_ADDRESS):
        problem = f"{row['type']} is in the feed, but has no delivery to {row['url']}"
        yield row["order_id"], f"events {row['sequence']}", problem
