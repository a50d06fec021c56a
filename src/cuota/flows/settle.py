"""The one runner of decisions about an order: read, decide, save; changed meanwhile, read and decide again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from cuota.core.order.outcome import Outcome
from cuota.core.refusal import Code, Refused
from cuota.db.order import orders, outcomes
from cuota.db.order.orders import Found
from cuota.db.order.outcomes import Answer
from cuota.db.pool import BUSY, GONE, unavailable
from cuota.db.risk import history
from cuota.db.session import Session
from cuota.flows.context import Context

Read = Callable[[Session], Awaitable[Found | None]]
Decide = Callable[[Found], Outcome]
Keep = Callable[[Outcome], Answer]

# A session lost during a save leaves it unknown whether it was applied. Reading again tells; a restarting
# database gets this many tries, so many seconds apart, before the caller is told that it is unknown.
READ_AGAIN = 20
PAUSE_SECONDS = 0.25
IN_STEP_SECONDS = 5.0
UNKNOWN = (
    "The database went away while this was being applied, and it is not known whether it was. "
    "Repeat the request with the same reference: it is never applied twice."
)


def order_not_found() -> Refused:
    """The same answer for an unknown order, a malformed id, and another merchant's order."""
    return Refused(Code.ORDER_NOT_FOUND, "There is no such order. Check the orderId and the credentials.")


async def settle(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    read: Read,
    decide: Decide,
    keep: Keep | None = None,
    *,
    consumer_id: UUID | None = None,
) -> Outcome:
    """Apply one decision exactly once. `decide` raises what it refuses; that ends it.

    `consumer_id`: whose exposure it is decided on, too. What changes that is another order, so the turn is the
    consumer's then.
    """
    run = _Run(context, merchant_id, order_id, read, decide, keep, consumer_id)
    lost = False
    for _ in range(READ_AGAIN):
        try:
            outcome = await _ladder(run)
        except GONE:
            # Whether it was applied is unknown now, until a read tells.
            lost = True
            await _reachable(run)
        except Refused as refused:
            raise (unavailable(UNKNOWN) if lost and refused.code is Code.UNAVAILABLE else refused) from None
        else:
            for event in outcome.events:
                context.happened(event)
            return outcome
    raise unavailable(UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Run:
    context: Context
    merchant_id: UUID
    order_id: UUID
    read: Read
    decide: Decide
    keep: Keep | None
    consumer_id: UUID | None


async def _ladder(run: _Run) -> Outcome:
    """Twice without a lock, since most orders are busy with one thing at a time; then under the row's lock.

    So a busy order starves nobody.
    """
    outcome = await _attempt(run, run.context.pool)
    if outcome is None:
        async with run.context.lock(run.consumer_id or run.order_id):
            outcome = await _attempt(run, run.context.pool) or await _locked(run)
    return outcome


async def _attempt(run: _Run, session: Session) -> Outcome | None:
    """None where the order changed between the read and the save."""
    found = await run.read(session)
    if found is None:
        raise order_not_found()
    outcome = run.decide(found)
    saved = await outcomes.save(session, outcome, run.keep(outcome) if run.keep else None)
    return outcome if saved else None


async def _locked(run: _Run) -> Outcome:
    try:
        async with run.context.pool.session() as connection, connection.transaction():
            await connection.fetchrow(orders.LOCK, run.merchant_id, run.order_id)
            if run.consumer_id is not None:
                await history.lock(connection, run.consumer_id)
            outcome = await _attempt(run, connection)
    except asyncpg.LockNotAvailableError:
        raise unavailable("This order is busy; nothing was applied. Try again shortly.") from None
    if outcome is None:
        # Under the lock only a lost Idempotency-Key lease leaves an outcome unsaved.
        raise Refused(
            Code.IDEMPOTENCY_IN_PROGRESS, "Another request with this Idempotency-Key runs.", retry_after=1
        )
    return outcome


async def _reachable(run: _Run) -> None:
    """Wait for the database to come back; the caller is told the truth if it does not."""
    for _ in range(READ_AGAIN):
        await asyncio.sleep(PAUSE_SECONDS)
        try:
            async with asyncio.timeout(IN_STEP_SECONDS):
                await run.context.pool.in_step()
            await run.read(run.context.pool)
        except TimeoutError:
            break
        except (Refused, *GONE, *BUSY):
            continue
        return
    raise unavailable(UNKNOWN, retry_after=5)
