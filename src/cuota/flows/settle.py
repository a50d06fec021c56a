"""The one runner of decisions about an order: read, decide, save; changed meanwhile, read and decide again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import asyncpg

from cuota.core.outcome import Outcome
from cuota.core.refusal import Code, Refused
from cuota.db import orders, outcomes
from cuota.db.orders import Found, Session
from cuota.db.outcomes import Answer
from cuota.db.pool import GONE, unavailable
from cuota.flows.context import Context

Read = Callable[[Session], Awaitable[Found | None]]
Decide = Callable[[Found], Outcome]
Keep = Callable[[Outcome], Answer]

# A session lost during a save leaves it unknown whether it was applied. Reading again tells; a restarting
# database gets this many tries, so many seconds apart, before the caller is told that it is unknown.
READ_AGAIN = 20
PAUSE_SECONDS = 0.25
UNKNOWN = (
    "The database went away while this was being applied, and it is not known whether it was. "
    "Repeat the request with the same reference: it is never applied twice."
)


def order_not_found() -> Refused:
    """The same answer for an unknown order, a malformed id, and another merchant's order."""
    return Refused(Code.ORDER_NOT_FOUND, "There is no such order. Check the orderId and the credentials.")


async def settle(
    context: Context, merchant_id: UUID, order_id: UUID, read: Read, decide: Decide, keep: Keep | None = None
) -> Outcome:
    """Apply one decision exactly once. `decide` raises what it refuses; that ends it.

    Twice without a lock, since most orders are busy with one thing at a time; then under the row's lock, so that
    a busy order starves nobody.
    """
    outcome = await _attempt(context.pool, read, decide, keep)
    if outcome is not None:
        return outcome
    async with context.lock(order_id):
        outcome = await _attempt(context.pool, read, decide, keep)
        if outcome is not None:
            return outcome
        return await _locked(context, merchant_id, order_id, read, decide, keep)


async def _attempt(session: Session, read: Read, decide: Decide, keep: Keep | None) -> Outcome | None:
    for _ in range(READ_AGAIN):
        found = await read(session)
        if found is None:
            raise order_not_found()
        outcome = decide(found)
        try:
            saved = await outcomes.save(session, outcome, keep(outcome) if keep else None)
        except GONE:
            await _reachable(read, session)
            continue
        return outcome if saved else None
    raise unavailable(UNKNOWN)


async def _reachable(read: Read, session: Session) -> None:
    """Wait for the database to come back; the caller is told the truth if it does not."""
    for _ in range(READ_AGAIN):
        await asyncio.sleep(PAUSE_SECONDS)
        try:
            await read(session)
        except (Refused, *GONE):
            continue
        return
    raise unavailable(UNKNOWN, retry_after=5)


async def _locked(
    context: Context, merchant_id: UUID, order_id: UUID, read: Read, decide: Decide, keep: Keep | None
) -> Outcome:
    try:
        async with context.pool.session() as connection, connection.transaction():
            await connection.fetchrow(orders.LOCK, merchant_id, order_id)
            outcome = await _attempt(connection, read, decide, keep)
    except asyncpg.LockNotAvailableError:
        raise unavailable("This order is busy; nothing was applied. Try again shortly.") from None
    except GONE:
        raise unavailable(UNKNOWN) from None
    if outcome is None:
        # Under the lock only a lost Idempotency-Key lease leaves an outcome unsaved.
        raise Refused(
            Code.IDEMPOTENCY_IN_PROGRESS, "Another request with this Idempotency-Key runs.", retry_after=1
        )
    return outcome
