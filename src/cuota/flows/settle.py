"""Runs every decision about an existing order: read, decide, save. If the order changed in between, read and decide again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, overload
from uuid import UUID

import asyncpg

from cuota.core.order.movement import Movement
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.refusal import Code, Refused
from cuota.db.deadlock import once_more
from cuota.db.order import orders, outcomes
from cuota.db.order.orders import Found
from cuota.db.order.outcomes import Answer
from cuota.db.pool import GONE, unavailable
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.lost_session import READ_AGAIN, read_after_loss


class HasOrder(Protocol):
    """The data for a decision: the order, and anything else that the flow reads."""

    @property
    def order(self) -> Order:
        """The order as it was read."""
        ...


Reading = TypeVar("Reading", bound=HasOrder)
Decision = TypeVar("Decision", bound=Outcome | None)
# Reads the data for a decision, given the session, the merchant id and the order id. None means that there is no such order.
Read = Callable[[Session, UUID, UUID], Awaitable[Reading | None]]
MakeAnswer = Callable[[Movement], Answer]
Save = Callable[[Session, Outcome, Answer | None], Awaitable[bool]]

MORE_ATTEMPTS = 8
UNKNOWN = (
    "The connection to the database was lost while the request was being applied, so the result is unknown. "
    "Repeat the request with the same reference; it is never applied twice."
)


def order_not_found() -> Refused:
    """Return the same answer for an unknown order, a malformed id, and another merchant's order."""
    return Refused(Code.ORDER_NOT_FOUND, "There is no such order. Check the orderId and the credentials.")


@dataclass(frozen=True, slots=True)
class Done(Generic[Reading, Decision]):
    """The last read, and the outcome that was decided on it and saved. The outcome is None if there was nothing to do."""

    found: Reading
    outcome: Decision

    @property
    def order(self) -> Order:
        """The order as it is now."""
        return self.found.order if self.outcome is None else self.outcome.order


@overload
async def settle(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    decide: Callable[[Found], Decision],
) -> Done[Found, Decision]: ...


@overload
async def settle(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    decide: Callable[[Reading], Decision],
    read: Read[Reading],
    keep: MakeAnswer | None = None,
    *,
    save: Save | None = None,
) -> Done[Reading, Decision]: ...


async def settle(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    decide: Callable[..., Outcome | None],
    read: Read[Any] = orders.read_with_plan,
    keep: MakeAnswer | None = None,
    *,
    save: Save | None = None,
) -> Done[Any, Any]:
    """Apply one decision exactly once.

    `read` reads the data for the decision; by default the order and its plan. `decide` is called with this data,
    perhaps several times. It returns the outcome to save, or None if there is nothing to do, or it raises a refusal.
    `keep` makes the answer that is stored with the outcome's movement, for the request's Idempotency-Key. `save`
    replaces `outcomes.save`. A flow that passes `save` also writes rows of the consumer, which may be on another server,
    so the order's row is never locked during that save. Such a flow retries instead, because an open order changes only a few
    times.
    """
    run = _Run(context, merchant_id, order_id, decide, read, keep, save)
    lost = False
    for _ in range(READ_AGAIN):
        try:
            done = await _ladder(run)
        except GONE as problem:
            # Until a read succeeds, we do not know whether the save was applied. Then we decide again, on what was read.
            lost = True
            await read_after_loss(context, merchant_id, order_id, problem, UNKNOWN)
        except Refused as refused:
            raise (unavailable(UNKNOWN) if lost and refused.code is Code.UNAVAILABLE else refused) from None
        else:
            _tell(context, done.outcome)
            return done
    raise unavailable(UNKNOWN)


def _tell(context: Context, outcome: Outcome | None) -> None:
    if outcome is None:
        return
    for event in outcome.events:
        context.happened(event)
    if outcome.review_answer is not None:
        context.reviewed(outcome.review_answer.state)


@dataclass(frozen=True, slots=True)
class _Run:
    context: Context
    merchant_id: UUID
    order_id: UUID
    decide: Callable[..., Outcome | None]
    read: Read[Any]
    keep: MakeAnswer | None
    save: Save | None


async def _ladder(run: _Run) -> Done[Any, Outcome | None]:
    """Try once without any lock, because most orders have one change at a time. Then retry under this process's lock.

    The last attempt holds the row's lock in the database, so that every request for a busy order succeeds in the end.
    """
    done = await _attempt(run, run.context.pool)
    if done is None:
        async with run.context.lock(run.order_id):
            done = await _attempt(run, run.context.pool) or await _last(run)
    return done


async def _last(run: _Run) -> Done[Any, Outcome | None]:
    if run.save is None:
        return await once_more(lambda: _locked(run))
    for _ in range(MORE_ATTEMPTS):
        if (done := await _attempt(run, run.context.pool)) is not None:
            return done
    raise _busy()


def _busy() -> Refused:
    return unavailable("Other requests are changing this order; nothing was applied. Try again shortly.")


async def _attempt(run: _Run, session: Session) -> Done[Any, Outcome | None] | None:
    """Return None if nothing was saved.

    Then the order changed since the read, the lease was lost, or a unique key was taken.
    """
    found = await run.read(session, run.merchant_id, run.order_id)
    if found is None:
        raise order_not_found()
    outcome = run.decide(found)
    if outcome is None:
        return Done(found, None)
    answer = None
    if run.keep is not None:
        assert outcome.movement is not None, "an answer is stored with a movement"
        answer = run.keep(outcome.movement)
    saved = await (run.save or outcomes.save)(session, outcome, answer)
    return Done(found, outcome) if saved else None


async def _locked(run: _Run) -> Done[Any, Outcome | None]:
    try:
        async with run.context.pool.session() as connection, connection.transaction():
            await connection.fetchrow(orders.LOCK, run.merchant_id, run.order_id)
            done = await _attempt(run, connection)
    except asyncpg.LockNotAvailableError:
        raise _busy() from None
    if done is None:
        # Under the lock, an outcome stays unsaved only if the lease on the Idempotency-Key was lost.
        raise Refused(
            Code.IDEMPOTENCY_IN_PROGRESS,
            "Another request with this Idempotency-Key is in progress.",
            retry_after=1,
        )
    return done
