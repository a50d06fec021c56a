"""Records the bank's answer about a payout: its status, ledger row and event, all in one transaction."""

from __future__ import annotations

import logging

from cuota.core.order.event import Event
from cuota.core.payout.arrival import next_look
from cuota.core.payout.payout import PayoutStatus
from cuota.db.payout import sending
from cuota.db.payout.sending import DuePayout
from cuota.flows.context import Context
from cuota.rails.bank.protocol import BankAnswer, BankState

log = logging.getLogger("cuota.work")

_TARGETS = {
    BankState.ACCEPTED: PayoutStatus.SENT,
    BankState.PAID: PayoutStatus.PAID,
    BankState.REJECTED: PayoutStatus.RETURNED,
    BankState.RETURNED: PayoutStatus.RETURNED,
}


async def settle_payout(context: Context, due: DuePayout, answer: BankAnswer) -> list[PayoutStatus]:
    """Record the bank's answer, and return all new statuses of the payout.

    A repeated answer, or an older one that arrives late, changes nothing.
    """
    now, status = context.now(), _TARGETS[answer.state]
    since = due.paid_at if status is PayoutStatus.PAID and due.paid_at is not None else now
    look_at = next_look(status, since, due.arrival_date, now)
    target = "rejected" if answer.state is BankState.REJECTED else status.value
    steps = await sending.move(
        context.pool, due, target, now, look_at, reason=answer.reason, reference=answer.reference
    )
    if not steps:
        # The bank's answer is not new. If another worker has changed the payout in the meantime, the time that the
        # other worker set is kept.
        at = next_look(due.status, due.paid_at or now, due.arrival_date, now)
        await sending.later(context.pool, due, at, None)
    for step in steps:
        context.happened(Event(f"payout.{step}", due.amount))
    if PayoutStatus.RETURNED in steps:
        facts = {"payoutId": str(due.payout_id), "merchantId": str(due.merchant_id), "reason": answer.reason}
        log.warning("payout returned", extra={"facts": facts})
    return steps
