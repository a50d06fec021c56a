"""Sends money back to cards: claims due card refunds, calls the card rail under each refund's key, records the result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from cuota.core.order.card_refund import cover, settle_card_refund
from cuota.core.order.job import CardRefund
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.refusal import Refused
from cuota.db.order import orders
from cuota.db.plan import charges
from cuota.db.plan.charges import DueRefund
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.settle import settle
from cuota.rails.bounded import SECONDS
from cuota.rails.card.protocol import RefundRequest
from cuota.rails.unavailable import RailUnavailable

BATCH = 40
AT_ONCE = 8
# Even the slowest rail finishes a batch before the lease of its claims ends.
assert charges.LEASE.total_seconds() > BATCH / AT_ONCE * SECONDS
LONGEST_WAIT = timedelta(hours=1)
log = logging.getLogger("cuota.work")


@dataclass(frozen=True, slots=True)
class _Refunding:
    """An order, its card refund while that has no result, and the cents that Cuota lost in chargebacks of the charge."""

    order: Order
    pending: CardRefund | None
    borne: int


async def return_money(context: Context) -> int:
    """Handle the card refunds that are due. Returns how many were claimed."""
    claimed = await charges.claim_refunds(context.pool, context.now(), BATCH)
    places = asyncio.Semaphore(AT_ONCE)

    async def give_back(due: DueRefund) -> None:
        facts = {"orderId": str(due.order_id)}
        async with places:
            try:
                await _return_one(context, due)
            except Refused as busy:
                log.warning("card refund waits", extra={"facts": {**facts, "code": busy.code}})
            except Exception:
                # A refund that fails must not delay the others. Its lease ends, and it is retried.
                log.exception("card refund failed", extra={"facts": facts})

    await asyncio.gather(*(give_back(due) for due in claimed))
    return len(claimed)


async def _return_one(context: Context, due: DueRefund) -> None:
    # A refund that a rail may have been asked for is asked for again, because its result must become known.
    if due.unasked and not await charges.ask(context.pool, due):
        await _hold_back(context, due)
        return
    asked = RefundRequest(
        due.card_refund_id, due.charge_id, due.card_token, due.amount, due.merchant_id, due.order_id
    )
    try:
        answer = await context.rails.card.refund(asked)
    except RailUnavailable as problem:
        # Calling again with the same key is safe: the rail acts only once for each key.
        wait = min(timedelta(seconds=10) * 2 ** min(due.tries, 10), LONGEST_WAIT)
        await charges.try_again(context.pool, due, context.now() + wait, str(problem)[:200])
        return
    if not answer.final:
        # The processor has accepted the refund and answers later. A repeated call with the same key is the same refund.
        await charges.try_again(context.pool, due, context.now() + LONGEST_WAIT, "processing")
        return
    await _record(context, due, None if answer.approved else answer.reason or "declined")


async def _hold_back(context: Context, due: DueRefund) -> None:
    """Handle a refund whose payment the card's bank took back, or may take back: the consumer gets the money once."""
    standing = await charges.standing(context.pool, due)
    if standing is None:
        return
    if standing.disputed:
        await charges.wait(context.pool, due, context.now() + LONGEST_WAIT)
        return

    def decide(found: _Refunding) -> Outcome | None:
        return cover(found.order, found.pending, found.borne, context.now()) if found.pending else None

    # What the chargeback did not return is sent after the lease of this claim.
    await settle(context, due.merchant_id, due.order_id, decide, _reading(due))


def _reading(
    due: DueRefund, *, on_card: bool = False
) -> Callable[[Session, UUID, UUID], Awaitable[_Refunding | None]]:
    async def read(session: Session, merchant_id: UUID, order_id: UUID) -> _Refunding | None:
        found = await orders.read_with_plan(session, merchant_id, order_id)
        # Read this after the order: if the refund is recorded in between, the order's version is stale and nothing is
        # saved.
        pending = await charges.still_pending(session, due)
        lost = 0 if on_card else await charges.borne(session, merchant_id, order_id, due.charge_id)
        return None if found is None else _Refunding(found.order, pending, lost)

    return read


async def _record(context: Context, due: DueRefund, reason: str | None) -> None:
    """Record the result of a refund. `reason` says why the money is not on the card; None if it is."""
    asked = CardRefund(due.card_refund_id, due.charge_id, due.amount)

    def decide(found: _Refunding) -> Outcome | None:
        # The refund is not pending: another worker recorded the answer, or our own earlier save did and we lost its
        # result.
        if not found.pending:
            return None
        return settle_card_refund(found.order, asked, reason, context.now(), found.borne)

    await settle(context, due.merchant_id, due.order_id, decide, _reading(due, on_card=reason is None))
