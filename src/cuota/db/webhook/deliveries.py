"""Deliveries: one row for each event and receiver, claimed in turn, every attempt kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from cuota.core.webhook.delivery import HOLDS_BACK_FOR, Attempt
from cuota.db.session import Session
from cuota.db.webhook.claims import Claim
from cuota.db.webhook.events import OWN_ADDRESS

# Longer than any attempt may take: what a worker had claimed whose end nobody could see is free after this.
LEASE = timedelta(seconds=40)

# A replay leaves what is under way to its worker: also what is claimed after the replay's `now`, while it waits for a
# session or a row, each no longer than the limits of a session.
CLAIMED_MEANWHILE = timedelta(seconds=10)

# As much again of a queue is looked at as may be claimed, for what waits for an earlier event and steps aside.
LOOK_PAST = 48
# An earlier event is under way: its record wakes the later one; this is for when they cross.
LOOK_AGAIN = timedelta(seconds=2)
LAST = 2**62

# Single rows are found by their key: pending is said as "has a time" there, or the planner, which thinks the index of
# what is pending small, would read all of it.

# From queue to queue by the index: what one receiver's backlog costs here is one row.
_LANES = """
WITH RECURSIVE lane AS (
    (SELECT merchant_id, receiver, host FROM deliveries WHERE state = 'pending'
        ORDER BY merchant_id, receiver, host LIMIT 1)
    UNION ALL
    SELECT n.merchant_id, n.receiver, n.host FROM lane l CROSS JOIN LATERAL (
        SELECT d.merchant_id, d.receiver, d.host FROM deliveries d WHERE d.state = 'pending'
            AND (d.merchant_id, d.receiver, d.host) > (l.merchant_id, l.receiver, l.host)
        ORDER BY d.merchant_id, d.receiver, d.host LIMIT 1) n
)
SELECT merchant_id, receiver, host FROM lane l
WHERE (receiver = $2 OR EXISTS (SELECT FROM webhook_endpoints w
        WHERE w.merchant_id = l.merchant_id AND w.endpoint_id = l.receiver AND w.state = 'active'))
    AND $1 >= (SELECT d.try_at FROM deliveries d WHERE d.state = 'pending' AND d.merchant_id = l.merchant_id
        AND d.receiver = l.receiver AND d.host = l.host ORDER BY d.try_at, d.position LIMIT 1)
"""
# Claimed by moving try_at on; what an earlier event of its order holds back steps aside in the same way: of each order
# the first that holds back is looked for once, and a window tells it to the order's others. A row that has changed
# since it was looked at (xmin) is left: what held it back may have been recorded, or another worker has it.
# Whatever the planner thinks of a table that was empty a minute ago, no step costs the square of what is due: nothing
# is joined that could be read whole for each row, and what is found is found again by its place (ctid).
# `LEAST = turn` is `turn <= room`, and the planner takes it for one row.
_CLAIM = f"""
WITH due AS MATERIALIZED (
    SELECT q.*, lane.room, row_number() OVER (PARTITION BY q.order_id, q.receiver) AS nth
    FROM unnest($4::uuid[], $5::text[], $6::integer[]) AS lane (receiver, host, room) CROSS JOIN LATERAL (
        SELECT d.order_id, d.sequence, d.receiver, d.host, d.try_at, d.position, d.ctid AS spot, d.xmin AS version
        FROM deliveries d WHERE d.merchant_id = $1 AND d.receiver = lane.receiver AND d.host = lane.host
            AND d.state = 'pending' AND d.try_at <= $2
        ORDER BY d.try_at, d.position LIMIT lane.room + {LOOK_PAST}
    ) q
), looked AS (
    SELECT d.*, max(f.sequence) OVER an_order AS first, max(f.until) OVER an_order AS until
    FROM due d LEFT JOIN LATERAL (
        SELECT e.sequence,
            CASE WHEN e.tries = e.failed AND e.try_at > $2 THEN e.try_at ELSE $2 + $7::interval END AS until
        FROM deliveries e WHERE d.nth = 1 AND e.merchant_id = $1 AND e.order_id = d.order_id
            AND e.receiver = d.receiver AND e.try_at IS NOT NULL AND e.failed < {HOLDS_BACK_FOR}
        ORDER BY e.sequence LIMIT 1
    ) f ON true
    WINDOW an_order AS (PARTITION BY d.order_id, d.receiver)
), waiting AS (
    SELECT l.*, CASE WHEN l.first < l.sequence THEN l.until END AS waits_for FROM looked l
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
UPDATE deliveries d SET tries = d.tries + 1 - (h.waits_for IS NOT NULL)::integer,
    try_at = COALESCE(h.waits_for, $3), claimed_by = CASE WHEN h.waits_for IS NULL THEN $8::bigint END
FROM held h WHERE d.ctid = h.spot AND d.merchant_id = $1
RETURNING d.merchant_id, d.order_id, d.sequence, d.receiver, d.url, d.host, d.tries, d.failed,
    h.waits_for IS NOT NULL AS waits
"""
# Fenced by the number of tries: a worker that was too slow records nothing over the one that took over. The next event
# of the order that waited for this one is due at once, and before all that has stepped aside meanwhile; it is touched
# even where it is due already, since a claim that still saw it waiting may be about to put it off. `LEAST` is always
# true, and the planner takes it for one row: each is looked up, and not all of a merchant's read for them.
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
    SELECT $1, o.order_id, o.sequence, o.receiver, (SELECT count(*) + 1 FROM delivery_attempts a
        WHERE a.merchant_id = $1 AND a.order_id = o.order_id AND a.sequence = o.sequence AND a.receiver = o.receiver),
        o.at, o.status, o.ms, o.error, o.answer FROM done o
)
SELECT count(*) AS freed FROM freed
"""
_OF_EVENT = """SELECT receiver, url, state, tries, try_at, settled_at FROM deliveries
    WHERE merchant_id = $1 AND order_id = $2 AND sequence = $3 ORDER BY receiver"""
_ATTEMPTS = """SELECT receiver, number, at, status, ms, error, answer FROM delivery_attempts
    WHERE merchant_id = $1 AND order_id = $2 AND sequence = $3 ORDER BY at, number"""
# To where the endpoint is now, and not to one that is gone. What may be under way at this moment is left to its worker;
# what waits for a later try is sent at once. `LEAST` as in a claim: each event's deliveries are looked up by their key.
_AGAIN = """UPDATE deliveries d SET state = 'pending', tries = 0, failed = 0, try_at = $2, settled_at = NULL,
    claimed_by = NULL, (url, host) = (SELECT t.url, split_part(t.url, '/', 3) FROM (SELECT COALESCE((SELECT w.url
        FROM webhook_endpoints w WHERE w.merchant_id = $1 AND w.endpoint_id = d.receiver), d.url) AS url) t)
    FROM feed f
    WHERE f.merchant_id = $1 AND f.position > $4 AND f.position <= $5 AND LEAST(f.position, $5) = f.position
        AND d.merchant_id = $1 AND d.order_id = f.order_id AND d.sequence = f.sequence
        AND ($3::uuid IS NULL OR d.receiver = $3)
        AND NOT (d.state = 'pending' AND d.tries > d.failed AND d.try_at > $2 AND d.try_at <= $6)
        AND NOT EXISTS (SELECT FROM webhook_endpoints w WHERE w.merchant_id = $1 AND w.endpoint_id = d.receiver
            AND w.state = 'deleted') RETURNING 1"""
# What was never addressed to an endpoint, since it happened before there was one.
_ADDRESS = """INSERT INTO deliveries
    (merchant_id, order_id, sequence, receiver, position, url, host, state, try_at, created_at)
    SELECT $1, f.order_id, f.sequence, w.endpoint_id, f.position, w.url, split_part(w.url, '/', 3), 'pending', $2, $2
    FROM feed f JOIN webhook_endpoints w ON w.merchant_id = $1 AND w.endpoint_id = $3 AND w.state <> 'deleted'
    WHERE f.merchant_id = $1 AND f.position > $4 AND f.position <= $5
    ON CONFLICT DO NOTHING RETURNING 1"""
_PARK = """UPDATE deliveries SET state = 'parked', try_at = NULL, settled_at = $3, claimed_by = NULL
    WHERE merchant_id = $1 AND receiver = $2 AND state = 'pending'"""


class Lane(NamedTuple):
    """A receiver's own queue. Orders' own addresses share one receiver id, so the host (with its port) is named too."""

    merchant_id: UUID
    receiver: UUID
    host: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that is this worker's to try. `tries` counts this one; `failed` those that came to nothing."""

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
        """The queue that it came from."""
        return Lane(self.merchant_id, self.receiver, self.host)

    @property
    def claim(self) -> Claim:
        """Which try of which delivery it is."""
        return Claim(self.merchant_id, self.order_id, self.sequence, self.receiver, self.tries)


@dataclass(frozen=True, slots=True)
class Result:
    """What a try came to and what follows: `state`, and when it is tried again."""

    claimed: Claimed
    attempt: Attempt
    at: datetime
    state: str
    try_at: datetime | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """How one event stands with one receiver."""

    receiver: UUID
    url: str
    state: str
    tries: int
    try_at: datetime | None
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt as it is kept."""

    receiver: UUID
    number: int
    at: datetime
    status: int | None
    ms: int
    error: str | None
    answer: bytes | None


async def lanes_due(session: Session, now: datetime) -> list[Lane]:
    """Queues that have a delivery due and may be served: those of paused endpoints wait."""
    return [Lane(*row) for row in await session.fetch(_LANES, now, OWN_ADDRESS)]


async def claim(
    session: Session, merchant_id: UUID, now: datetime, room: dict[Lane, int], worker: int | None = None
) -> tuple[list[Claimed], int]:
    """Claim up to `room` of each of a merchant's queues; also answers how many stepped aside for an earlier event.

    By `worker`'s name, if it has one: then others may take over as soon as it is dead, and not after LEASE only.
    """
    receivers, hosts = [lane.receiver for lane in room], [lane.host for lane in room]
    rows = await session.fetch(
        _CLAIM, merchant_id, now, now + LEASE, receivers, hosts, list(room.values()), LOOK_AGAIN, worker
    )
    claimed = [Claimed(*row[:8]) for row in rows if not row["waits"]]
    return claimed, len(rows) - len(claimed)


async def record(session: Session, merchant_id: UUID, results: list[Result]) -> int:
    """Keep attempts of one merchant and what follows, in one statement; answers how many later events are due by it."""
    columns = zip(
        *(
            (
                r.claimed.order_id, r.claimed.sequence, r.claimed.receiver, r.claimed.tries, r.at, r.state, r.try_at,
                r.attempt.status, r.attempt.ms, r.attempt.error, r.attempt.answer,
            )
            for r in results
        ),
        strict=True,
    )  # fmt: skip
    row = await session.fetchrow(_RECORD, merchant_id, *(list(column) for column in columns))
    return 0 if row is None else int(row["freed"])


async def of_event(
    session: Session, merchant_id: UUID, order_id: UUID, sequence: int
) -> tuple[list[Delivery], list[AttemptRecord]]:
    """Every receiver of an event, and every attempt."""
    found = [Delivery(*row) for row in await session.fetch(_OF_EVENT, merchant_id, order_id, sequence)]
    tried = [AttemptRecord(*row) for row in await session.fetch(_ATTEMPTS, merchant_id, order_id, sequence)]
    return found, tried


async def send_again(
    session: Session,
    merchant_id: UUID,
    now: datetime,
    *,
    receiver: UUID | None = None,
    after: int = 0,
    until: int = LAST,
) -> int:
    """Replay what stands in the feed after a position, up to and with another; to one receiver, or to all.

    An endpoint that is named is also sent what happened before it was registered. Answers how many will be sent.
    """
    asked = (merchant_id, now, receiver, after, until)
    rows = await session.fetch(_AGAIN, *asked, now + LEASE + CLAIMED_MEANWHILE)
    if receiver is not None:
        rows += await session.fetch(_ADDRESS, *asked)
    return len(rows)


async def park(session: Session, merchant_id: UUID, receiver: UUID, now: datetime) -> None:
    """A receiver is gone: what waited for it is parked, not lost."""
    await session.fetchrow(_PARK, merchant_id, receiver, now)
