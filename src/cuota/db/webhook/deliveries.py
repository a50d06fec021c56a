"""Deliveries: one row for each event and receiver. Workers claim rows in order; every attempt is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.webhook.delivery import HOLDS_BACK_FOR, Attempt
from cuota.db.session import Session
from cuota.db.webhook.claims import Claim
from cuota.db.webhook.events import OWN_ADDRESS
from cuota.db.webhook.lanes import Lane

# How long a claim lasts. No attempt takes this long, so a row whose worker disappeared can be claimed again after this time.
LEASE = timedelta(seconds=40)

# A claim reads this many rows beyond its limit, because some rows must wait for an earlier event of the same order.
LOOK_PAST = 48
# A delivery that waits for an earlier event is normally made due when the earlier result is recorded. If the claim and the
# recording happen at the same moment, the delivery is checked again after this time. The deliveries behind it are checked later, one
# after the other: an order may have thousands of events, and all of them would be postponed again every two seconds.
LOOK_AGAIN = timedelta(seconds=2)
LOOK_LATER_FOR = 30

# Statements that look up single rows by key test `try_at IS NOT NULL` instead of `state = 'pending'`. Otherwise the planner,
# which believes that few rows are pending, would read the whole index of pending rows.


# Claims deliveries by setting try_at to the end of the lease. A delivery that must wait for an earlier event of its order gets a
# later try_at instead, and is not claimed. For each order, the statement looks up the first such event once (`looked`) and a
# window function shares the result with the order's other rows.
# A claimed delivery goes to its endpoint's address of this moment: the change of an endpoint with a long queue moves only the
# beginning of the queue (endpoints.py). Until then, the old host stays the name of the queue. Nothing is claimed for an endpoint
# that is paused or removed, whose deliveries may still be pending (replays.py).
# The statement skips a row that has changed since it was read (its xmin differs): the earlier event may have been recorded, or
# another worker has claimed the row.
# The planner's statistics may be wrong, for example when the table was empty a minute ago. The statement never takes quadratic
# time anyway: it joins nothing that could be read whole for each row, and it finds rows again by their ctid.
# The column `tries` ends at 32767. A row at this number is still claimed, and the merchant's other rows with it.
# `LEAST(turn, room) = turn` means `turn <= room`. It is written this way because the planner then expects one row.
_CLAIM = f"""
WITH due AS MATERIALIZED (
    SELECT q.*, lane.room, row_number() OVER (PARTITION BY q.order_id, q.receiver) AS nth
    FROM unnest($4::uuid[], $5::text[], $6::integer[]) AS lane (receiver, host, room) CROSS JOIN LATERAL (
        SELECT d.order_id, d.sequence, d.receiver, d.host, d.try_at, d.position, d.ctid AS spot, d.xmin AS version
        FROM deliveries d WHERE d.merchant_id = $1 AND d.receiver = lane.receiver AND d.host = lane.host
            AND d.state = 'pending' AND d.try_at <= $2
        ORDER BY d.try_at, d.position LIMIT lane.room + {LOOK_PAST}
    ) q WHERE lane.receiver = '{OWN_ADDRESS}' OR EXISTS (SELECT FROM webhook_endpoints w
        WHERE w.merchant_id = $1 AND w.endpoint_id = lane.receiver AND w.state = 'active')
), looked AS (
    SELECT d.*, max(f.sequence) OVER an_order AS first, max(f.until) OVER an_order AS until
    FROM due d LEFT JOIN LATERAL (
        SELECT e.sequence, CASE WHEN e.tries = e.failed AND e.try_at > $2 THEN e.try_at END AS until
        FROM deliveries e WHERE d.nth = 1 AND e.merchant_id = $1 AND e.order_id = d.order_id
            AND e.receiver = d.receiver AND e.try_at IS NOT NULL AND e.failed < {HOLDS_BACK_FOR}
        ORDER BY e.sequence LIMIT 1
    ) f ON true
    WINDOW an_order AS (PARTITION BY d.order_id, d.receiver)
), waiting AS (
    SELECT l.*, CASE WHEN l.first < l.sequence THEN
        coalesce(l.until, $2 + least(l.sequence - l.first, {LOOK_LATER_FOR}) * $7::interval) END AS waits_for FROM looked l
), seen AS MATERIALIZED (
    SELECT w.*, sum((w.waits_for IS NULL)::integer) OVER (
        PARTITION BY w.receiver, w.host ORDER BY w.try_at, w.position) AS turn
    FROM waiting w
), held AS (
    SELECT d.spot, s.waits_for
    FROM seen s CROSS JOIN LATERAL (
        SELECT d.ctid AS spot FROM deliveries d
        WHERE d.ctid = s.spot AND d.merchant_id = $1 AND d.xmin = s.version AND d.try_at <= $2
        LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ) d WHERE LEAST(s.turn, s.room) = s.turn
)
UPDATE deliveries d SET tries = least(d.tries + 1 - (h.waits_for IS NOT NULL)::integer, 32767),
    try_at = COALESCE(h.waits_for, $3), claimed_by = CASE WHEN h.waits_for IS NULL THEN $8::bigint END,
    url = COALESCE((SELECT w.url FROM webhook_endpoints w
        WHERE w.merchant_id = $1 AND w.endpoint_id = d.receiver), d.url)
FROM held h WHERE d.ctid = h.spot AND d.merchant_id = $1
RETURNING d.merchant_id, d.order_id, d.sequence, d.receiver, d.url, d.host, d.tries, d.failed,
    h.waits_for IS NOT NULL AS waits
"""
# Records results. The number of tries must still match, so a worker that was too slow cannot overwrite the result of the worker
# that took over. The statement also makes the order's next event due at once (`freed`), ahead of the deliveries that were
# postponed. It updates that row even if the row is due already: a concurrent claim that saw the row waiting would otherwise
# postpone it.
# A worker records a result again when it lost the connection before the answer came. A delivery that already has the next `try_at`
# and no claim has that result already.
# A result is recorded even if its attempt cannot be listed: retention deletes the earliest attempts, so a number may be missing.
# `LEAST(tries, 32767) = tries` is always true. It makes the planner expect one row, so it looks up each row by key and does not
# read all rows of the merchant.
# The results come in the order of the deliveries' key, and PostgreSQL takes them one by one, each with its later event. Every
# statement on several deliveries locks them in this order (replays.py, claims.py, endpoints.py), so that no two of them deadlock.
_RECORD = f"""
WITH given AS (
    SELECT * FROM unnest($2::uuid[], $3::integer[], $4::uuid[], $5::smallint[], $6::timestamptz[], $7::text[],
        $8::timestamptz[], $9::smallint[], $10::integer[], $11::text[], $12::bytea[])
        AS g (order_id, sequence, receiver, tries, at, state, try_at, status, ms, error, answer)
    WHERE LEAST(g.tries, 32767) = g.tries
), done AS (
    UPDATE deliveries d SET state = g.state, try_at = g.try_at, claimed_by = NULL,
        failed = CASE WHEN g.state = 'delivered' THEN d.failed ELSE d.failed + 1 END,
        settled_at = CASE WHEN g.state = 'pending' THEN NULL ELSE g.at END
    FROM given g WHERE d.merchant_id = $1 AND d.order_id = g.order_id AND d.sequence = g.sequence
        AND d.receiver = g.receiver AND d.tries = g.tries AND d.try_at IS NOT NULL
        AND (d.claimed_by IS NOT NULL OR d.try_at IS DISTINCT FROM g.try_at)
    RETURNING g.*, d.failed
), later AS MATERIALIZED (
    SELECT o.order_id, o.receiver, o.at, n.sequence, n.tries FROM done o CROSS JOIN LATERAL (
        SELECT n.sequence, n.tries FROM deliveries n WHERE n.merchant_id = $1 AND n.order_id = o.order_id
            AND n.receiver = o.receiver AND n.sequence > o.sequence AND n.try_at IS NOT NULL AND n.tries = 0
        ORDER BY n.sequence LIMIT 1
    ) n WHERE o.state <> 'pending' OR o.failed >= {HOLDS_BACK_FOR}
), freed AS (
    UPDATE deliveries d SET try_at = LEAST(d.created_at, l.at) FROM later l
    WHERE d.merchant_id = $1 AND d.order_id = l.order_id AND d.sequence = l.sequence AND d.receiver = l.receiver
        AND d.try_at IS NOT NULL AND d.tries = l.tries
    RETURNING 1
), kept AS (
    INSERT INTO delivery_attempts (merchant_id, order_id, sequence, receiver, number, at, status, ms, error, answer)
    SELECT $1, o.order_id, o.sequence, o.receiver, (SELECT coalesce(max(a.number), 0) + 1 FROM delivery_attempts a
        WHERE a.merchant_id = $1 AND a.order_id = o.order_id AND a.sequence = o.sequence AND a.receiver = o.receiver),
        o.at, o.status, o.ms, o.error, o.answer FROM done o
    ON CONFLICT DO NOTHING
)
SELECT count(*) AS freed FROM freed
"""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that this worker has claimed. `tries` includes the next attempt; `failed` counts the failed attempts."""

    merchant_id: UUID
    order_id: UUID
    sequence: int
    receiver: UUID
    url: str
    host: str
    tries: int
    failed: int

    @property
    def lane(self) -> Lane:
        """Return the queue of this delivery."""
        return Lane(self.merchant_id, self.receiver, self.host)

    @property
    def claim(self) -> Claim:
        """Return the claim that identifies this delivery and this attempt."""
        return Claim(self.merchant_id, self.order_id, self.sequence, self.receiver, self.tries)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one attempt: the attempt, the new `state` of the delivery, and the time of the next attempt."""

    claimed: Claimed
    attempt: Attempt
    at: datetime
    state: str
    try_at: datetime | None


async def claim(
    session: Session, merchant_id: UUID, now: datetime, room: dict[Lane, int], worker: int | None = None
) -> tuple[list[Claimed], int]:
    """Claim up to `room` deliveries of each queue. Also return how many were postponed because of an earlier event.

    If `worker` is given, other workers can take over the claims as soon as that worker is dead. Otherwise they must wait for LEASE.
    """
    receivers, hosts = [lane.receiver for lane in room], [lane.host for lane in room]
    rows = await session.fetch(
        _CLAIM, merchant_id, now, now + LEASE, receivers, hosts, list(room.values()), LOOK_AGAIN, worker
    )
    claimed = [Claimed(*row[:8]) for row in rows if not row["waits"]]
    return claimed, len(rows) - len(claimed)


async def record(session: Session, merchant_id: UUID, results: list[Result]) -> int:
    """Record results of one merchant in one statement. Return how many later events became due."""
    columns = zip(
        *(
            (
                r.claimed.order_id, r.claimed.sequence, r.claimed.receiver, r.claimed.tries, r.at, r.state, r.try_at,
                r.attempt.status, r.attempt.ms, r.attempt.error, r.attempt.answer,
            )
            for r in sorted(results, key=_key)
        ),
        strict=True,
    )  # fmt: skip
    row = await session.fetchrow(_RECORD, merchant_id, *(list(column) for column in columns))
    return 0 if row is None else int(row["freed"])


def _key(result: Result) -> tuple[UUID, UUID, int]:
    return result.claimed.order_id, result.claimed.receiver, result.claimed.sequence
