"""Applies the events of card processors: each event once, in any order, even after a worker was killed in the middle.

Each step may run twice without harm: a charge is looked up and recorded as usual, and a refund fails only once.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from uuid import UUID

from cuota.core.checkout.ending import Charging
from cuota.core.order.card_refund import fail_later, settle_card_refund
from cuota.core.order.job import CardRefund, JobState
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.refusal import Refused
from cuota.db.order import orders
from cuota.db.plan import card_events, charges
from cuota.db.plan.card_events import DueEvent, KnownRefund
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.dispute.report_chargeback import report_chargeback
from cuota.flows.plan.finish_pending import finish_pending
from cuota.flows.plan.return_late_charge import OWN_EVENTS, return_late_charge
from cuota.flows.settle import settle
from cuota.rails.bounded import SECONDS
from cuota.rails.card.protocol import CardEventKind

BATCH = 20
AT_ONCE = 8
# A look-up calls the rail at most twice: it finds no charge and charges, it finds an abandoned charge and cancels it, or it finds a
# late charge and refunds it. Even the slowest rail finishes a batch before the lease of its claims ends.
assert card_events.LEASE.total_seconds() >= -(-BATCH // AT_ONCE) * 2 * SECONDS
log = logging.getLogger("cuota.work")


@dataclass(frozen=True, slots=True)
class _Refunded:
    """An order, the card refund that an event is about, and the cents that Cuota lost in chargebacks of its charge."""

    order: Order
    refund: KnownRefund | None
    borne: int


async def apply_card_events(context: Context) -> int:
    """Apply the events that are due. Return how many were claimed."""
    claimed = await card_events.claim(context.pool, context.now(), BATCH)
    places = asyncio.Semaphore(AT_ONCE)

    async def handle(due: DueEvent) -> None:
        facts = {"orderId": str(due.order_id), "rail": due.rail, "event": due.event_id, "kind": due.kind}
        async with places:
            try:
                await _apply(context, due)
            except Refused as busy:
                log.warning("card event waits", extra={"facts": {**facts, "code": busy.code}})
                return
            except Charging:
                log.warning("card event waits for the answer to its charge", extra={"facts": facts})
                return
            except Exception:
                # One event that fails must not delay the others. Its lease ends, and it is retried.
                log.exception("card event failed", extra={"facts": facts})
                return
            if await card_events.applied(context.pool, due, context.now()):
                context.card_event(due.rail, due.kind)
                if due.kind == CardEventKind.REFUNDED_ELSEWHERE:
                    log.warning("refunded elsewhere", extra={"facts": facts})

    await asyncio.gather(*(handle(due) for due in claimed))
    return len(claimed)


async def _apply(context: Context, due: DueEvent) -> None:
    if due.kind == CardEventKind.CHARGE_CHANGED:
        await _look_at_charge(context, due)
        if due.charge_id is not None:
            await return_late_charge(context, due.merchant_id, due.order_id, due.charge_id)
    elif due.kind == CardEventKind.REFUND_FAILED:
        await _fail_refund(context, due)
    elif due.kind == CardEventKind.CARD_UPDATED:
        await card_events.renew_card(context.pool, due)
    elif due.kind in {
        CardEventKind.DISPUTE_OPENED,
        CardEventKind.DISPUTE_CHANGED,  # an inquiry may have become a dispute
        CardEventKind.DISPUTE_CLOSED,
    }:
        await _look_at_charge(context, due)
        await report_chargeback(context, due, closes=due.kind == CardEventKind.DISPUTE_CLOSED)
    # Refunds made elsewhere are only stored; `cuota rails` lists them.


async def _look_at_charge(context: Context, due: DueEvent) -> None:
    """Look up the event's charge now. If the rail does not answer, the job for due orders looks it up later."""
    ids: tuple[UUID, UUID] = (due.merchant_id, due.order_id)
    pending = await charges.pending(context.pool, *ids)
    if pending is None or pending.charge.charge_id != due.charge_id:
        return
    found = await orders.read_with_plan(context.pool, *ids)
    if found is not None:
        await finish_pending(context, found.order, pending)


async def _fail_refund(context: Context, due: DueEvent) -> None:
    if due.card_refund_id is None:
        # Cuota's own event is about a charge that no stored refund belongs to; `cuota rails` lists it.
        if due.rail != OWN_EVENTS:
            facts = {"orderId": str(due.order_id), "event": due.event_id}
            log.warning("unknown refund failed", extra={"facts": facts})
        return
    refund_id, reason = due.card_refund_id, due.reason or "refund_failed"

    async def read(session: Session, merchant_id: UUID, order_id: UUID) -> _Refunded | None:
        found = await orders.read_with_plan(session, merchant_id, order_id)
        # Read this after the order: if the refund changes in between, the order's version is stale and nothing is
        # saved.
        refund = await card_events.refund_of(session, due)
        borne = await charges.borne(session, merchant_id, order_id, refund.charge_id) if refund else 0
        return None if found is None else _Refunded(found.order, refund, borne)

    def decide(known: _Refunded) -> Outcome | None:
        refund = known.refund
        if refund is None or refund.state in {
            JobState.FAILED,
            JobState.CHARGED_BACK,
            JobState.PAID_OTHERWISE,
        }:
            return None
        asked = CardRefund(refund_id, refund.charge_id, refund.amount)
        fail = fail_later if refund.state == JobState.SUCCEEDED else settle_card_refund
        return fail(known.order, asked, reason, context.now(), known.borne)

    await settle(context, due.merchant_id, due.order_id, decide, read)
