"""Opens disputes and chargebacks about real orders, and lets their deadlines pass."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from cuota.core.dispute.chargeback import ChargebackReport, lose_chargeback, open_chargeback, win_chargeback
from cuota.core.dispute.dispute import Dispute, DisputeParty, DisputeReason
from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.order.outcome import Outcome
from cuota.flows.dispute.answer_dispute import decide_dispute, submit_evidence
from cuota.flows.dispute.open_dispute import open_dispute
from cuota.flows.dispute.read_dispute import DisputedOrder, OrderWithClaims, read_claims, reading
from cuota.flows.plan import manage_plan
from cuota.flows.plan.limit_asks import Asker
from cuota.flows.settle import settle
from support.makers import Merchant, complete
from support.phones import phone_number


async def captured(merchant: Merchant, amount: str = "100.00", **more: object) -> dict[str, Any]:
    """Make an approved order that is captured whole."""
    order = await merchant.approved(amount, **more)
    assert (await merchant.move(order, "capture", amount)).status_code == 200
    return order


async def disputed(
    merchant: Merchant,
    order: dict[str, Any],
    cents: int,
    *,
    text: str = "Nothing came.",
    files: tuple[EvidenceFile, ...] = (),
    party: DisputeParty = DisputeParty.CONSUMER,
) -> Dispute:
    """Open a consumer's dispute about an order."""
    ids = merchant.merchant_id, UUID(order["orderId"])
    reason = DisputeReason.NOT_RECEIVED
    return await open_dispute(merchant.service.context, *ids, reason, cents, text, files, party)


async def decided(merchant: Merchant, dispute: Dispute, *, for_consumer: bool) -> Dispute:
    """Decide a dispute as the operator."""
    ids = merchant.merchant_id, dispute.dispute_id
    return await decide_dispute(merchant.service.context, *ids, for_consumer=for_consumer)


async def paid_twice(merchant: Merchant, amount: str = "100.00") -> dict[str, Any]:
    """Make an approved order, nothing of which is captured. The consumer has paid the second payment early."""
    context, order = merchant.service.context, await merchant.create(amount)
    phone = phone_number()
    await complete(merchant.service, merchant.merchant_id, order, phone=phone)
    order_id, consumer_id = UUID(order["orderId"]), context.vault.consumer_id(phone)
    detail = await manage_plan.find_plan(context, consumer_id, merchant.merchant_id, order_id)
    assert detail is not None
    await manage_plan.pay_early(context, detail, [2], detail.shown.plan[1].total, Asker(phone))
    return order


async def charged_back(
    merchant: Merchant,
    order: dict[str, Any],
    cents: int,
    respond_by: datetime | None = None,
    payment: int = 1,
    reason: DisputeReason = DisputeReason.NOT_MINE,
) -> Dispute:
    """Open a chargeback of one of the order's payments."""
    context = merchant.service.context
    dispute_id = context.new_id()
    deadline = respond_by or context.now() + timedelta(days=9)

    def decide(read: OrderWithClaims) -> Outcome | None:
        charge = next(item.charge_id for item in read.plan if item.number == payment)
        assert charge is not None
        report = ChargebackReport(charge, reason, cents, f"du_{dispute_id.hex}", deadline)
        return open_chargeback(read.order, read.plan, report, read.claims, dispute_id, context.now())

    done = await settle(context, merchant.merchant_id, UUID(order["orderId"]), decide, read_claims)
    assert done.outcome is not None
    return next(each for each in done.outcome.disputes if each.dispute_id == dispute_id)


async def network_decides(
    merchant: Merchant, order: dict[str, Any], dispute: Dispute, *, for_consumer: bool
) -> Dispute:
    """Decide a chargeback as the card network."""
    context = merchant.service.context

    def decide(read: DisputedOrder) -> Outcome | None:
        given = read.order, read.plan, read.dispute
        if for_consumer:
            return lose_chargeback(*given, read.claims, read.fees, context.now(), context.new_id)
        return win_chargeback(*given, read.claims, context.now(), context.new_id)

    ids = merchant.merchant_id, UUID(order["orderId"])
    done = await settle(context, *ids, decide, reading(dispute.dispute_id))
    assert done.outcome is not None
    return next(each for each in done.outcome.disputes if each.dispute_id == dispute.dispute_id)


async def to_decide(merchant: Merchant, *, files: tuple[EvidenceFile, ...] = ()) -> Dispute:
    """Open a dispute that the merchant has answered, so that it waits for the operator."""
    dispute = await disputed(merchant, await captured(merchant), 4000, files=files)
    context = merchant.service.context
    await submit_evidence(context, merchant.merchant_id, dispute.dispute_id, "It was delivered.", [])
    return dispute
