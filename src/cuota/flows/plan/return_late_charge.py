"""Ends a charge that never reached the card rail, and refunds it if it reaches the rail after its end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID, uuid5

from cuota.core.checkout.ending import Charging
from cuota.core.instant import timestamp
from cuota.core.order.outcome import Outcome
from cuota.db.plan import card_events, charges
from cuota.db.plan.card_events import NewEvent
from cuota.flows.charge_card import request_again
from cuota.flows.context import Context
from cuota.flows.settle import Read, Reading, settle
from cuota.rails.card.protocol import CardEventKind, CardOutcome, RefundRequest

# A charge that was never sent is looked up again this long after its end, even if its processor reports nothing.
LOOK_AGAIN_AFTER = (timedelta(hours=1), timedelta(days=1))
# The name in place of a rail's: these events come from Cuota, so they say nothing about a processor's events.
OWN_EVENTS = "cuota"
log = logging.getLogger("cuota.work")


async def settle_unsent(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    charge_id: UUID,
    decide: Callable[[Reading], tuple[Outcome | None, datetime | None]],
    read: Read[Reading],
) -> Outcome | None:
    """Apply a decision about a charge that the rail does not know. Return the saved outcome, or None if there is nothing to do.

    `decide` returns the outcome, and if the outcome ends the charge, also when the charge was last requested. A crash after the end
    could lose the later look-ups of the charge, so they are stored before the end.
    """
    watched: datetime | None = None
    requested: datetime | None = None

    def decide_here(found: Reading) -> Outcome | None:
        nonlocal requested
        outcome, requested_at = decide(found)
        requested = None if outcome is None else requested_at
        return outcome if requested in {None, watched} else None

    saved = (await settle(context, merchant_id, order_id, decide_here, read)).outcome
    if saved is None and requested is not None:
        await look_again_later(context, merchant_id, order_id, charge_id, requested)
        watched = requested
        saved = (await settle(context, merchant_id, order_id, decide_here, read)).outcome
    return saved


async def look_again_later(
    context: Context, merchant_id: UUID, order_id: UUID, charge_id: UUID, requested_at: datetime
) -> None:
    """Store events that make Cuota look up this charge after an hour and after a day.

    `requested_at` is when the charge was last requested. A second call with the same time stores no further events, but restarts the
    hour and the day. The first caller may have died before it ended the charge, and its events may have been applied already.
    """
    now = context.now()
    for number, after in enumerate(LOOK_AGAIN_AFTER, 1):
        name = f"look-up {number} of {charge_id}, requested at {timestamp(requested_at)}"
        event = NewEvent(
            merchant_id, order_id, OWN_EVENTS, name, CardEventKind.CHARGE_CHANGED, now, charge_id
        )
        await card_events.store_again(context.pool, event, now, now + after)


async def return_late_charge(context: Context, merchant_id: UUID, order_id: UUID, charge_id: UUID) -> None:
    """Refund the charge at the rail if it was ended as never sent, but the rail has it now. The books do not change.

    If the rail refuses the refund, `cuota rails` lists the charge until an operator settles it. This may run again without harm:
    the key of the refund is always the same, and so is the name of the listed event. Raises Charging if the rail has no final
    answer yet.
    """
    ended = await charges.never_sent(context.pool, merchant_id, order_id, charge_id)
    if ended is None:
        return
    rail, asked = context.rails.card, request_again(ended, merchant_id, order_id)
    answer = await rail.find_charge(asked)
    if answer is not None and answer.outcome is CardOutcome.REQUIRES_ACTION:
        answer = await rail.give_up(asked)
        if answer.approved:
            # The consumer confirmed at that moment. The next run refunds the charge.
            raise Charging
    if answer is None or answer.outcome is CardOutcome.DECLINED:
        return
    if not answer.final:
        raise Charging
    key = uuid5(charge_id, "late charge")
    refunded = await rail.refund(
        RefundRequest(key, charge_id, asked.token, asked.amount, merchant_id, order_id)
    )
    facts = {"orderId": str(order_id), "chargeId": str(charge_id), "reason": refunded.reason}
    if not refunded.final:
        raise Charging
    if refunded.approved:
        log.warning("a charge arrived after its end and was refunded", extra={"facts": facts})
        return
    now, reason = context.now(), f"charge {charge_id} arrived after its end: {refunded.reason}"
    failed = NewEvent(
        merchant_id, order_id, OWN_EVENTS, f"late-charge-{charge_id}", CardEventKind.REFUND_FAILED, now, charge_id,
        amount=asked.amount, reason=reason,
    )  # fmt: skip
    await card_events.store(context.pool, failed, now)
    log.error("refund a charge that arrived after its end", extra={"facts": facts})
