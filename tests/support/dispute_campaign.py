"""Makes random disputes and chargebacks of a campaign through the flows, and says how the merchant's money
must change."""

from __future__ import annotations

import contextlib
import random
from uuid import UUID, uuid4

import pytest

from cuota.core.dispute.dispute import DisputeParty, DisputeReason
from cuota.core.refusal import Refused
from cuota.db.plan.card_events import DueEvent
from cuota.flows.dispute import answer_dispute
from cuota.flows.dispute.close_disputes import settle_due_disputes
from cuota.flows.dispute.open_dispute import open_dispute
from cuota.flows.dispute.report_chargeback import report_chargeback
from support.own_service import Own
from support.payout_model import Model, OrderModel

FIRST_CHARGE = "SELECT charge_id FROM charges WHERE merchant_id = $1 AND order_id = $2 AND installment = 1 AND state = 'succeeded'"
NEXT = "SELECT min(due_at) AS at FROM disputes"
CLOSED = "SELECT dispute_id FROM disputes WHERE merchant_id = $1 AND status = 'closed'"
OPEN = "SELECT status, appealed_at IS NOT NULL AS appealed FROM disputes WHERE merchant_id = $1 AND dispute_id = $2"
PAID = 25_000


async def dispute(own: Own, model: Model, chance: random.Random) -> None:
    """Open a dispute about one of the orders, or do the next step in an open one."""
    order = chance.choice(model.orders)
    if order.dispute is None:
        await _open(own, model, order, chance)
        return
    ids = model.merchant.merchant_id, order.dispute
    (seen,) = await own.context.pool.fetch(OPEN, *ids)
    undecided = seen["status"] in {"open", "under_review", "appealed"}
    match chance.choice(("withdraw", "decide", "decide", "accept", "appeal")):
        case "withdraw":
            await answer_dispute.withdraw_dispute(own.context, *ids)
            model.line("dispute_released", order.withheld)
            order.dispute, order.withheld, order.lost = None, 0, None
        case "decide" if undecided:
            order.lost = chance.random() < 0.5
            await answer_dispute.decide_dispute(own.context, *ids, for_consumer=order.lost)
        case "accept" if undecided:
            order.lost = order.accepted = True
            await answer_dispute.accept_dispute(own.context, *ids)
        case "appeal" if seen["status"] in {"won", "lost"} and not seen["appealed"]:
            loser = DisputeParty.CONSUMER if seen["status"] == "won" else DisputeParty.MERCHANT
            with pytest.raises(Refused) if order.accepted else contextlib.nullcontext():
                await answer_dispute.appeal_dispute(own.context, *ids, loser, "Look again")
            order.lost = True if order.accepted else None


async def _open(own: Own, model: Model, order: OrderModel, chance: random.Random) -> None:
    if not order.disputable:
        return
    cents = chance.choice((order.disputable, chance.randint(1, order.disputable)))
    ids = model.merchant.merchant_id, UUID(order.order["orderId"])
    made = await open_dispute(own.context, *ids, DisputeReason.NOT_RECEIVED, cents, "Nothing came.")
    order.dispute, order.withheld, order.lost, order.accepted = made.dispute_id, cents, None, False
    model.line("dispute_withheld", -cents)
    model.disputed.append(order)


async def close_due(own: Own, models: list[Model]) -> None:
    """Do what is due in disputes, and update the models of those that closed. A dispute that nobody answered
    is lost."""
    assert await settle_due_disputes(own.context)
    for model in models:
        rows = await own.context.pool.fetch(CLOSED, model.merchant.merchant_id)
        closed = {row["dispute_id"] for row in rows}
        for order in model.disputed:
            if order.dispute in closed:
                cents, lost = order.withheld, order.lost is not False
                order.dispute, order.withheld, order.lost = None, 0, None
                model.line("dispute_released", cents)
                if lost:
                    order.give_back(cents)
                    model.lose(order, cents, "dispute_lost")


async def charge_back(own: Own, model: Model, chance: random.Random) -> None:
    """Let the card network take back the first payment of an order, or decide a chargeback that is open."""
    order = chance.choice(model.orders)
    if order.charged_back is False:
        return
    merchant_id, order_id = model.merchant.merchant_id, UUID(order.order["orderId"])
    (row,) = await own.context.pool.fetch(FIRST_CHARGE, merchant_id, order_id)
    opens, won = order.charged_back is None, chance.random() < 0.5
    status = "needs_response" if opens else "won" if won else "lost"
    event = DueEvent(
        merchant_id, order_id, "sandbox", str(uuid4()), "dispute.opened", row["charge_id"], None, "fraudulent", PAID,
        f"dp_{order_id.hex}", status, own.context.now(),
    )  # fmt: skip
    await report_chargeback(own.context, event, closes=not opens)
    (_taken if opens else _won if won else _lost)(model, order)


def _taken(model: Model, order: OrderModel) -> None:
    room = order.captured - order.refunded
    part = min(order.first, room)
    # The consumer can claim at most what was captured, and at most what the bank has not taken back.
    overlap = max(0, part - (room - order.withheld), order.withheld - order.others)
    order.charged_back, order.withheld_for_bank = True, part
    model.settle(order, overlap)
    model.line("dispute_withheld", -part)


def _won(model: Model, order: OrderModel) -> None:
    model.line("dispute_released", order.withheld_for_bank)
    order.charged_back, order.withheld_for_bank = False, 0


def _lost(model: Model, order: OrderModel) -> None:
    # The chargeback also covers what was captured after the bank took the payment. If the consumer's dispute
    # withholds part of that, the dispute gives it up.
    refunded = min(order.first, order.captured - order.refunded)
    rest = order.captured - order.refunded - order.withheld
    model.settle(order, max(0, refunded - rest))
    voided = min(order.first - refunded, PAID - refunded, order.capturable)
    _won(model, order)
    order.first -= refunded + voided
    order.voided += voided
    if refunded:
        model.lose(order, refunded, "dispute_lost")
