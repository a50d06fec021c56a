"""Records a card processor's reports about a chargeback: opened, won or lost. Each report is recorded once, in any order."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from cuota.core.checkout.ending import Charging
from cuota.core.dispute.chargeback import (
    ChargebackReport,
    lose_chargeback,
    open_chargeback,
    win_chargeback,
)
from cuota.core.dispute.claims import Claims
from cuota.core.dispute.close_dispute import MerchantFees
from cuota.core.dispute.dispute import Dispute, DisputeReason
from cuota.core.installment import Installment
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.db.dispute import disputes
from cuota.db.plan.card_events import DueEvent
from cuota.db.session import Session
from cuota.flows.charge_card import note_chargeback
from cuota.flows.context import Context
from cuota.flows.dispute.read_dispute import read_claims
from cuota.flows.settle import settle

# The codes of processors and networks for our reasons.
REASONS = {
    "product_not_received": DisputeReason.NOT_RECEIVED,
    "product_unacceptable": DisputeReason.NOT_AS_DESCRIBED,
    "credit_not_processed": DisputeReason.NOT_REFUNDED,
    "duplicate": DisputeReason.WRONG_AMOUNT,
    "incorrect_amount": DisputeReason.WRONG_AMOUNT,
    "fraudulent": DisputeReason.NOT_MINE,
    "unrecognized": DisputeReason.NOT_MINE,
}
# Networks allow at least this long. We use this if the processor does not report the deadline.
USUAL_DEADLINE = timedelta(days=7)
# An inquiry takes no money back. Stripe's names of its states begin with this text.
INQUIRY = "warning_"
LOST, WON = "lost", "won"
log = logging.getLogger("cuota.work")


@dataclass(frozen=True, slots=True)
class ChargedBackOrder:
    """An order with its plan, its open claims, and the chargeback if it is already recorded."""

    order: Order
    plan: tuple[Installment, ...]
    claims: Claims
    fees: MerchantFees
    booked: Dispute | None


async def report_chargeback(context: Context, due: DueEvent, *, closes: bool) -> None:
    """Record a chargeback, and its end if `closes`. If the end is reported first, both are recorded.

    Raises Charging while the answer to the charge itself is not recorded: until then, no payment exists that a bank can take back.
    """
    if (
        due.charge_id is None
        or due.reference is None
        or not due.amount
        or (due.status or "").startswith(INQUIRY)
    ):
        log.warning(
            "dispute not booked",
            extra={"facts": {"orderId": str(due.order_id), "event": due.event_id, "status": due.status}},
        )
        return
    reason = REASONS.get(due.reason or "", DisputeReason.OTHER)
    respond_by = due.respond_by or context.now() + USUAL_DEADLINE
    report = ChargebackReport(due.charge_id, reason, due.amount, due.reference, respond_by)
    dispute_id = context.new_id()

    def begin(read: ChargedBackOrder) -> Outcome | None:
        if read.booked is not None:
            return None
        if read.order.charging == report.charge_id:
            raise Charging
        return open_chargeback(read.order, read.plan, report, read.claims, dispute_id, context.now())

    def end(read: ChargedBackOrder) -> Outcome | None:
        if read.booked is None or not read.booked.is_open:
            return None
        if due.status == WON:
            return win_chargeback(
                read.order, read.plan, read.booked, read.claims, context.now(), context.new_id
            )
        return lose_chargeback(
            read.order, read.plan, read.booked, read.claims, read.fees, context.now(), context.new_id
        )

    ids = due.merchant_id, due.order_id
    await settle(context, *ids, begin, _reading(due.reference))
    if closes and due.status not in {WON, LOST}:
        # The network's decision is not known, so the chargeback is open until an event reports the decision.
        facts = {"orderId": str(due.order_id), "event": due.event_id, "status": due.status}
        log.warning("dispute closed without a decision", extra={"facts": facts})
    elif closes:
        await settle(context, *ids, end, _reading(due.reference))
        await note_chargeback(context, *ids, due.charge_id)


def _reading(reference: str) -> Callable[[Session, UUID, UUID], Awaitable[ChargedBackOrder | None]]:
    async def read(session: Session, merchant_id: UUID, order_id: UUID) -> ChargedBackOrder | None:
        found = await read_claims(session, merchant_id, order_id)
        if found is None:
            return None
        booked = await disputes.find_by_reference(session, merchant_id, order_id, reference)
        return ChargedBackOrder(found.order, found.plan, found.claims, found.fees, booked)

    return read
