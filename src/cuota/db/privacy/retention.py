"""Deletes data that has reached its age limit, in small batches of one merchant. docs/retention.md gives limits and reasons."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from uuid import UUID

from cuota.db.apart import late_of
from cuota.db.cluster.across import fetch_across, sweep
from cuota.db.pool import Pool, Row
from cuota.db.privacy.erasure import blank_orders
from cuota.db.session import Session
from cuota.db.webhook import deleted_deliveries

BATCH = 200
# An order that is still open this long after its limit is stuck. It must not block the orders behind it forever.
STUCK = timedelta(days=30)
ZERO = UUID(int=0)
CONSUMERS = "consumers"
LEFT_DELIVERIES = "left-deliveries"
# Deliveries without attempts are looked for this long after an order has reached their limit. Most events of an order come in the weeks
# of its plan, so by then their deliveries have reached the limit too.
AFTER_PLAN = timedelta(days=60)

# Every merchant with an order: its first event waits to be published, or has created the merchant's feed. Unlike the table
# merchants, these are on the shards, so that each shard of a cluster looks up its own merchants.
_MERCHANTS = "(SELECT merchant_id FROM feeds UNION SELECT merchant_id FROM outbox)"
_MERCHANTS_WITH_ORDERS = f"""
SELECT f.merchant_id FROM {_MERCHANTS} f LEFT JOIN retention r ON r.merchant_id = f.merchant_id AND r.term = $1
CROSS JOIN LATERAL (SELECT o.created_at FROM orders o WHERE o.merchant_id = f.merchant_id
    AND o.order_id > coalesce(r.order_id, $3::uuid) ORDER BY o.order_id LIMIT 1) next WHERE next.created_at < $2
"""
_BEGIN = """INSERT INTO retention (merchant_id, term, order_id, at) VALUES ($1, $2, $3, '-infinity')
    ON CONFLICT DO NOTHING"""
# The row is the lock: only one of two workers continues from here.
_PLACE = """SELECT order_id, at FROM retention WHERE merchant_id = $1 AND term = $2 FOR UPDATE SKIP LOCKED"""
_NEXT = """SELECT order_id, status, created_at FROM orders WHERE merchant_id = $1 AND order_id > $2
    ORDER BY order_id LIMIT $3"""
_MOVE = "UPDATE retention SET order_id = $3, at = $4 WHERE merchant_id = $1 AND term = $2"

_MERCHANTS_WITH_MESSAGES = f"""
SELECT f.merchant_id FROM {_MERCHANTS} f CROSS JOIN LATERAL (SELECT 1 FROM messages t
    WHERE t.merchant_id = f.merchant_id AND t.settled_at < $1 LIMIT 1) old
"""
_MESSAGES = """DELETE FROM messages WHERE merchant_id = $1 AND (order_id, message_id) IN (
    SELECT order_id, message_id FROM messages WHERE merchant_id = $1 AND settled_at < $2
    ORDER BY settled_at LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING 1"""
_MERCHANTS_WITH_ATTEMPTS = f"""
SELECT f.merchant_id FROM {_MERCHANTS} f CROSS JOIN LATERAL (SELECT 1 FROM delivery_attempts a
    WHERE a.merchant_id = f.merchant_id AND a.at < $1 LIMIT 1) old
"""
# The deliveries of `held`.
_HELD = """deliveries d USING held h WHERE d.merchant_id = $1 AND d.order_id = h.order_id
        AND d.receiver = h.receiver AND d.sequence = h.sequence"""
# Remembers that deliveries of this age may be missing (deleted_deliveries.py).
_LATER = "ON CONFLICT (merchant_id, term) DO UPDATE SET at = excluded.at WHERE r.at < excluded.at"
_MISSING = f"""INSERT INTO retention AS r (merchant_id, term, order_id, at)
    VALUES ($1, '{deleted_deliveries.TERM}', '{ZERO}', $2) {_LATER}"""
# Deletes a batch of attempts. A delivered delivery is deleted with its last attempt: the attempts find it, so it needs no index of its
# own. If another statement has locked the delivery, its attempts stay too, so that a later batch finds it again. A delivery that is
# being sent again is pending, and stays.
# Deliveries are locked in the order of their key, like by every statement on several deliveries.
_ATTEMPTS = f"""WITH batch AS MATERIALIZED (
    SELECT order_id, sequence, receiver, number FROM delivery_attempts WHERE merchant_id = $1 AND at < $2
    ORDER BY at LIMIT $3 FOR UPDATE SKIP LOCKED
), ended AS MATERIALIZED (
    SELECT b.order_id, b.receiver, b.sequence
    FROM (SELECT order_id, receiver, sequence, count(*) AS attempts FROM batch GROUP BY order_id, receiver, sequence) b
        CROSS JOIN LATERAL (SELECT FROM deliveries d WHERE d.merchant_id = $1 AND d.order_id = b.order_id
            AND d.receiver = b.receiver AND d.sequence = b.sequence AND d.state = 'delivered' AND d.settled_at < $2 LIMIT 1) d
    WHERE b.attempts = (SELECT count(*) FROM delivery_attempts a WHERE a.merchant_id = $1 AND a.order_id = b.order_id
        AND a.receiver = b.receiver AND a.sequence = b.sequence)
    ORDER BY b.order_id, b.receiver, b.sequence
), held AS MATERIALIZED (
    SELECT e.order_id, e.receiver, e.sequence
    FROM ended e CROSS JOIN LATERAL (SELECT FROM deliveries d WHERE d.merchant_id = $1
        AND d.order_id = e.order_id AND d.receiver = e.receiver AND d.sequence = e.sequence
        AND d.state = 'delivered' AND d.settled_at < $2 LIMIT 1 FOR UPDATE SKIP LOCKED) d
), gone AS (
    DELETE FROM {_HELD}
), marked AS (
    INSERT INTO retention AS r (merchant_id, term, order_id, at)
    SELECT $1, '{deleted_deliveries.TERM}', '{ZERO}', $2 WHERE EXISTS (SELECT FROM held)
    {_LATER}
)
DELETE FROM delivery_attempts a USING batch b WHERE a.merchant_id = $1 AND a.order_id = b.order_id
    AND a.receiver = b.receiver AND a.sequence = b.sequence AND a.number = b.number
    AND ((b.order_id, b.receiver, b.sequence) NOT IN (SELECT order_id, receiver, sequence FROM ended)
        OR (b.order_id, b.receiver, b.sequence) IN (SELECT order_id, receiver, sequence FROM held))
    RETURNING 1"""
# The files of a statement are stored before the statement. If the service is killed in between, no erasure finds the files.
_MERCHANTS_WITH_UNSAVED_FILES = f"""
SELECT f.merchant_id FROM {_MERCHANTS} f CROSS JOIN LATERAL (SELECT 1 FROM dispute_files t
    WHERE t.merchant_id = f.merchant_id AND t.created_at < $1 AND NOT EXISTS (SELECT FROM dispute_evidence e
        WHERE e.merchant_id = f.merchant_id AND e.dispute_id = t.dispute_id AND e.evidence_id = t.evidence_id) LIMIT 1) old
"""
_UNSAVED_FILES = """DELETE FROM dispute_files WHERE merchant_id = $1 AND (evidence_id, number) IN (
    SELECT t.evidence_id, t.number FROM dispute_files t WHERE t.merchant_id = $1 AND t.created_at < $2
        AND NOT EXISTS (SELECT FROM dispute_evidence e
            WHERE e.merchant_id = $1 AND e.dispute_id = t.dispute_id AND e.evidence_id = t.evidence_id)
    ORDER BY t.created_at LIMIT $3 FOR UPDATE OF t SKIP LOCKED) RETURNING 1"""
# Deliveries without attempts: earlier releases deleted the attempts alone. Each order is visited once, in the order of the ids.
_MERCHANTS_WITH_LEFT = f"""
SELECT f.merchant_id FROM {_MERCHANTS} f LEFT JOIN retention r ON r.merchant_id = f.merchant_id AND r.term = $1
CROSS JOIN LATERAL (SELECT 1 FROM deliveries d WHERE d.merchant_id = f.merchant_id
    AND d.order_id > coalesce(r.order_id, $2::uuid) AND d.order_id < $3 ORDER BY d.order_id LIMIT 1) next
"""
# The walk does not come back, so it waits for locked deliveries, in the order of their key.
_VISITED = """SELECT DISTINCT order_id FROM (SELECT d.order_id FROM deliveries d WHERE d.merchant_id = $1 AND d.order_id > $2
    AND d.order_id < $3 ORDER BY d.order_id LIMIT $4) page ORDER BY order_id"""
_LEFT = f"""WITH held AS MATERIALIZED (
    SELECT d.order_id, d.receiver, d.sequence FROM deliveries d WHERE d.merchant_id = $1 AND d.order_id = ANY ($3::uuid[])
        AND d.state = 'delivered' AND d.settled_at < $2 AND NOT EXISTS (SELECT FROM delivery_attempts a
        WHERE a.merchant_id = $1 AND a.order_id = d.order_id AND a.sequence = d.sequence AND a.receiver = d.receiver)
    ORDER BY d.order_id, d.receiver, d.sequence FOR UPDATE OF d
)
DELETE FROM {_HELD} RETURNING 1"""
_OLD_CONSUMERS = """SELECT consumer_id, updated_at FROM consumers WHERE updated_at < $1 AND updated_at > $2
    ORDER BY updated_at LIMIT $3"""
_WITH_PLANS = "SELECT DISTINCT consumer_id FROM plans WHERE consumer_id = ANY ($1::uuid[])"
_FORGET_CONSUMERS = (
    "DELETE FROM consumers WHERE consumer_id = ANY ($1::uuid[]) AND updated_at < $2 RETURNING 1"
)


async def blank_ended_orders(pool: Pool, status: str, before: datetime, now: datetime) -> int:
    """Remove the consumer from older orders that ended as `status`. Return how many orders were checked.

    There is one batch for each merchant. Each order is checked once for each status, so a longer limit that is set
    later restores nothing.
    """
    found = await fetch_across(pool, _MERCHANTS_WITH_ORDERS, status, before, ZERO)

    async def blank_some(merchant_id: UUID) -> int:
        return await _blank_some(pool, merchant_id, status, before, now)

    return await _each(pool, f"{status.lower()} orders", found, blank_some)


async def _blank_some(pool: Pool, merchant_id: UUID, status: str, before: datetime, now: datetime) -> int:
    await pool.fetchrow(_BEGIN, merchant_id, status, ZERO)
    async with pool.session() as session, session.transaction():
        place = await session.fetchrow(_PLACE, merchant_id, status)
        if place is None:
            return 0
        seen = []
        for row in await session.fetch(_NEXT, merchant_id, place["order_id"], BATCH):
            waits = row["status"] == "Created" and row["created_at"] >= before - STUCK
            if row["created_at"] >= before or waits:
                break
            seen.append(row)
        if seen:
            ended = [row["order_id"] for row in seen if row["status"] == status]
            await blank_orders(session, merchant_id, ended, now)
            await session.fetchrow(_MOVE, merchant_id, status, seen[-1]["order_id"], seen[-1]["created_at"])
    return len(seen)


async def forget_messages(pool: Pool, before: datetime) -> int:
    """Delete messages that were sent or failed before this time. Return how many there were."""
    return await _forget(pool, _MERCHANTS_WITH_MESSAGES, _MESSAGES, before)


async def forget_attempts(pool: Pool, before: datetime) -> int:
    """Delete delivery attempts that were made before this time. Return how many there were.

    A delivered delivery is deleted with its last attempt.
    """
    return await _forget(pool, _MERCHANTS_WITH_ATTEMPTS, _ATTEMPTS, before)


async def forget_unsaved_files(pool: Pool, before: datetime) -> int:
    """Delete files that were stored before this time for a dispute's statement that was never saved. Return how many."""
    return await _forget(pool, _MERCHANTS_WITH_UNSAVED_FILES, _UNSAVED_FILES, before)


async def forget_left_deliveries(pool: Pool, before: datetime) -> int:
    """Delete deliveries that arrived before this time and have no attempt. Return how many orders were checked.

    Each order is checked once: AFTER_PLAN after its creation has reached this age.
    """
    # The ids of orders begin with the time of their creation, in milliseconds (flows/context.py).
    until = UUID(int=int((before - AFTER_PLAN).timestamp() * 1000) << 80)
    found = await fetch_across(pool, _MERCHANTS_WITH_LEFT, LEFT_DELIVERIES, ZERO, until)

    async def forget_left(merchant_id: UUID) -> int:
        return await _forget_left(pool, merchant_id, before, until)

    return await _each(pool, LEFT_DELIVERIES, found, forget_left)


async def _forget_left(pool: Pool, merchant_id: UUID, before: datetime, until: UUID) -> int:
    await pool.fetchrow(_BEGIN, merchant_id, LEFT_DELIVERIES, ZERO)
    async with pool.session() as session, session.transaction():
        place = await session.fetchrow(_PLACE, merchant_id, LEFT_DELIVERIES)
        if place is None:
            return 0
        rows = await session.fetch(_VISITED, merchant_id, place["order_id"], until, BATCH)
        visited = [row["order_id"] for row in rows]
        if visited:
            if await session.fetch(_LEFT, merchant_id, before, visited):
                await session.fetchrow(_MISSING, merchant_id, before)
            await session.fetchrow(_MOVE, merchant_id, LEFT_DELIVERIES, visited[-1], before)
    return len(visited)


async def _forget(pool: Pool, merchants: str, some: str, before: datetime) -> int:
    return await sweep(pool, merchants, some, before, BATCH)


async def _each(pool: Pool, job: str, found: list[Row], act: Callable[[UUID], Awaitable[int]]) -> int:
    """Call `act` for each merchant, and return the sum of the results. What fails for one merchant waits for the next run."""
    return await late_of(pool, job).each("retention", [row["merchant_id"] for row in found], act)


async def forget_consumers(pool: Pool, before: datetime) -> int:
    """Delete people who entered their details and never agreed to a plan. Return how many were checked."""
    await pool.fetchrow(_BEGIN, ZERO, CONSUMERS, ZERO)
    async with pool.session() as session, session.transaction():
        place = await session.fetchrow(_PLACE, ZERO, CONSUMERS)
        if place is None:
            return 0
        rows = await session.fetch(_OLD_CONSUMERS, before, place["at"], BATCH)
        if rows:
            await _forget_some(session, [row["consumer_id"] for row in rows], before)
            await session.fetchrow(_MOVE, ZERO, CONSUMERS, ZERO, rows[-1]["updated_at"])
    return len(rows)


async def _forget_some(session: Session, consumer_ids: list[UUID], before: datetime) -> None:
    with_plans = {row["consumer_id"] for row in await session.fetch(_WITH_PLANS, consumer_ids)}
    gone = [consumer_id for consumer_id in consumer_ids if consumer_id not in with_plans]
    await session.fetch(_FORGET_CONSUMERS, gone, before)
