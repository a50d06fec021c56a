"""A consumer cannot keep a plan paused by one dispute after another, and a return notice does not undo a pause."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cuota.core.dispute.dispute import MOST_DISPUTES, DisputeParty
from cuota.core.refusal import Refused
from cuota.flows.dispute.answer_dispute import withdraw_dispute
from cuota.flows.dispute.ask_consumer import disputes_of_order
from cuota.flows.dispute.close_disputes import settle_due_disputes
from cuota.flows.dispute.notice_return import notice_return
from support.disputes import decided, disputed
from support.flows.changing import order_of, whole
from support.flows.collecting import agreed, set_clock
from support.own_service import Own


async def test_a_dispute_that_was_decided_finally_is_opened_again_only_by_the_operator(own: Own) -> None:
    order_id, shop = await order_of(own), own.auto_merchant
    order = {"orderId": str(order_id)}
    dispute = await disputed(shop, order, 4000)
    await decided(shop, dispute, for_consumer=False)
    set_clock(own, own.context.now() + timedelta(days=11))
    await settle_due_disputes(own.context)
    with pytest.raises(Refused, match="decided for the shop, finally"):
        await disputed(shop, order, 4000)
    assert (await disputes_of_order(own.context, shop.merchant_id, order_id)).disputable == 0
    await disputed(shop, order, 4000, party=DisputeParty.OPERATOR)
    await whole(own)


async def test_a_consumer_opens_a_limited_number_of_disputes_about_an_order(own: Own) -> None:
    order_id, shop = await order_of(own), own.auto_merchant
    order = {"orderId": str(order_id)}
    for _ in range(MOST_DISPUTES):
        dispute = await disputed(shop, order, 1)
        await withdraw_dispute(own.context, shop.merchant_id, dispute.dispute_id)
    with pytest.raises(Refused, match="To open another one, write to us"):
        await disputed(shop, order, 1)
    assert (await agreed(own, order_id)).order.paused_at is None


async def test_a_refund_after_a_return_notice_and_a_dispute_keeps_the_days_of_the_pause(own: Own) -> None:
    order_id, shop = await order_of(own), own.auto_merchant
    before = (await agreed(own, order_id)).plan[1].due_on
    await notice_return(own.context, shop.merchant_id, order_id, "UPS", "1Z999")
    dispute = await disputed(shop, {"orderId": str(order_id)}, 1000)
    set_clock(own, own.context.now() + timedelta(days=40))
    await withdraw_dispute(own.context, shop.merchant_id, dispute.dispute_id)
    await shop.move({"orderId": str(order_id)}, "refund", "10.00")
    assert (await agreed(own, order_id)).plan[1].due_on == before + timedelta(days=40)
    await whole(own)


async def test_during_a_dispute_a_return_notice_is_refused_because_nothing_is_charged_anyway(
    own: Own,
) -> None:
    order_id, shop = await order_of(own), own.auto_merchant
    await disputed(shop, {"orderId": str(order_id)}, 1000)
    assert not (await disputes_of_order(own.context, shop.merchant_id, order_id)).can_return
    with pytest.raises(Refused, match="Add the tracking number to your dispute"):
        await notice_return(own.context, shop.merchant_id, order_id, "UPS", "1Z999")
