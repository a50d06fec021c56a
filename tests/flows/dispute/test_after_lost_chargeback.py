"""After a lost chargeback: agreed days go on after a dispute, the books agree, and no cent goes back twice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from cuota.core.checkout.card import read_card
from cuota.core.dispute.dispute import DisputeReason
from cuota.core.plan.hardship import PausePlan
from cuota.db.plan import plans
from cuota.db.plan.card_events import DueEvent
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.allow_card import CHARGED_BACK, OTHER_CARD
from cuota.flows.checkout.take_step import Problem
from cuota.flows.dispute.answer_dispute import withdraw_dispute
from cuota.flows.dispute.open_dispute import open_dispute
from cuota.flows.dispute.report_chargeback import report_chargeback
from cuota.flows.order.return_money import return_money
from cuota.flows.plan import manage_plan
from cuota.flows.plan.change_plan import agree_on_change, preview_change
from cuota.flows.plan.limit_asks import Asker
from cuota.flows.privacy.erase_consumer import erase_consumer
from cuota.web.pages.account.view import next_words
from support.card import token_of
from support.flows.due import settle_all_due
from support.makers import Merchant, complete
from support.own_service import Own

PHONE = "2125550187"
# This is not one of the sandbox's test cards. Everybody uses these, so they have no fingerprint.
OURS = "4111111111111111"


async def bought(own: Own, shop: Merchant, card: str = "4242 4242 4242 4242") -> dict[str, Any]:
    order = await shop.create("100.00")
    await complete(own.service, shop.merchant_id, order, card, phone=PHONE)
    return order


async def charge_of(own: Own, order: dict[str, Any], installment: int) -> UUID:
    [row] = await own.context.pool.fetch(
        "SELECT charge_id FROM charges WHERE order_id = $1 AND installment = $2 AND state = 'succeeded'",
        UUID(order["orderId"]),
        installment,
    )
    charge_id: UUID = row["charge_id"]
    return charge_id


async def charged_back(
    own: Own,
    shop: Merchant,
    order: dict[str, Any],
    charge_id: UUID,
    cents: int,
    status: str,
    reason: str = "fraudulent",
) -> None:
    """Report a chargeback of a part of a charge. Its reference is its amount."""
    event = DueEvent(
        shop.merchant_id, UUID(order["orderId"]), "sandbox", str(uuid4()), "dispute.opened", charge_id, None, reason,
        cents, f"CB-{charge_id}-{cents}", status, own.context.now(),
    )  # fmt: skip
    await report_chargeback(own.context, event, closes=status in {"won", "lost"})


async def paid_early(own: Own, shop: Merchant, order: dict[str, Any], number: int) -> None:
    ids = shop.merchant_id, UUID(order["orderId"])
    detail = await manage_plan.find_plan(own.context, own.context.vault.consumer_id(PHONE), *ids)
    assert detail is not None
    cents = detail.shown.plan[number - 1].total
    await manage_plan.pay_early(own.context, detail, [number], cents, Asker(PHONE))


async def test_payments_that_were_agreed_on_after_a_lost_chargeback_go_on_after_a_dispute(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    ids = shop.merchant_id, UUID(order["orderId"])
    charge_id = await charge_of(own, order, 1)
    for status in ("needs_response", "lost"):
        await charged_back(own, shop, order, charge_id, 2500, status)
    asked = PausePlan(7)
    seen = await preview_change(own.context, *ids, asked)
    mark = seen.found.before.mark
    await agree_on_change(own.context, *ids, asked, by="Ada", reason="lost the job", mark=mark)
    dispute = await open_dispute(own.context, *ids, DisputeReason.NOT_RECEIVED, 1000, "Nothing came", ())
    await withdraw_dispute(own.context, ids[0], dispute.dispute_id)
    for _ in range(30):
        own.service.clock.ahead += timedelta(days=3)
        await settle_all_due(own.context)
    agreed = await plans.read(own.context.pool, *ids)
    assert agreed is not None
    # The card whose bank took a payment back pays nothing more: the consumer is asked for another one on the first day.
    assert [item.state for item in agreed.found.plan[1:]] == ["overdue"] * 3
    told = await own.context.pool.fetch(
        "SELECT 1 FROM messages WHERE kind = 'card_needed' AND installment > 1"
    )
    assert len(told) >= 2
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_refund_gives_nothing_back_to_a_charge_that_two_chargebacks_took_whole(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    await paid_early(own, shop, order, 2)
    charge_id = await charge_of(own, order, 2)
    for cents in (1500, 1000):
        await charged_back(own, shop, order, charge_id, cents, "needs_response")
    assert (await shop.move(order, "refund", "75.00")).status_code == 200
    await return_money(own.context)
    refunds = await own.context.pool.fetch("SELECT charge_id, amount FROM card_refunds")
    assert [tuple(row) for row in refunds] == [(await charge_of(own, order, 1), 2500)]


async def test_verify_knows_which_lost_chargeback_made_a_void(own: Own) -> None:
    shop = own.merchant
    order = await bought(own, shop)
    assert (await shop.move(order, "capture", "30.00")).status_code == 200
    await paid_early(own, shop, order, 2)
    charges = [await charge_of(own, order, number) for number in (1, 2)]
    for status in ("needs_response", "lost"):
        for charge_id in charges:
            await charged_back(own, shop, order, charge_id, 2500, status)
    assert (await verify(own.context.pool)).disagreements == []


async def test_verify_agrees_if_chargebacks_are_lost_in_another_order_than_they_opened(own: Own) -> None:
    shop = own.merchant
    order = await bought(own, shop)
    await paid_early(own, shop, order, 2)
    first, second = [await charge_of(own, order, number) for number in (1, 2)]
    await charged_back(own, shop, order, first, 2500, "needs_response")
    await charged_back(own, shop, order, second, 1672, "needs_response")
    await charged_back(own, shop, order, second, 1672, "lost")
    await charged_back(own, shop, order, first, 2500, "lost")
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_card_that_is_given_after_a_lost_chargeback_pays_each_payment_on_its_day(own: Own) -> None:
    shop, context = own.auto_merchant, own.context
    order = await bought(own, shop)
    ids = shop.merchant_id, UUID(order["orderId"])
    charge_id = await charge_of(own, order, 1)
    for status in ("needs_response", "lost"):
        await charged_back(own, shop, order, charge_id, 2500, status)
    detail = await manage_plan.find_plan(context, context.vault.consumer_id(PHONE), *ids)
    assert detail is not None
    assert manage_plan.overdue(context, detail) == []
    await new_card(own, shop, order)
    agreed = await plans.read(context.pool, *ids)
    assert agreed is not None
    assert [item.state for item in agreed.found.plan[1:]] == ["scheduled"] * 3
    await paid_on_three_days(own, shop, order)


async def new_card(own: Own, shop: Merchant, order: dict[str, Any], number: str = "5555555555554444") -> None:
    """Give the plan a card. It has another number than the first one, unless `number` says so."""
    ids = shop.merchant_id, UUID(order["orderId"])
    detail = await manage_plan.find_plan(own.context, own.context.vault.consumer_id(PHONE), *ids)
    assert detail is not None
    today = own.context.now().date()
    token = await token_of(own.context, read_card(number, "12/39", "123", today))
    await manage_plan.change_card(own.context, detail, token, 0, Asker(PHONE))


async def paid_on_three_days(own: Own, shop: Merchant, order: dict[str, Any]) -> None:
    """Let the time pass, and check that the last three payments are paid on three different days."""
    for _ in range(30):
        own.service.clock.ahead += timedelta(days=3)
        await settle_all_due(own.context)
    agreed = await plans.read(own.context.pool, shop.merchant_id, UUID(order["orderId"]))
    assert agreed is not None
    assert [item.state for item in agreed.found.plan[1:]] == ["paid"] * 3
    paid = await own.context.pool.fetch("SELECT created_at FROM charges WHERE state = 'succeeded'")
    assert len({row["created_at"].date() for row in paid}) == 4
    assert (await verify(own.context.pool)).disagreements == []


async def told_of_card(own: Own) -> int:
    return len(await own.context.pool.fetch("SELECT 1 FROM messages WHERE kind = 'card_needed'"))


async def test_a_card_that_was_given_before_the_loss_pays_the_other_payments_on_their_days(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    charge_id = await charge_of(own, order, 1)
    await charged_back(own, shop, order, charge_id, 2500, "needs_response")
    await new_card(own, shop, order)
    await charged_back(own, shop, order, charge_id, 2500, "lost")
    assert await told_of_card(own) == 0
    await paid_on_three_days(own, shop, order)


async def test_a_card_that_is_given_during_a_dispute_after_a_loss_pays_on_the_days(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    ids = shop.merchant_id, UUID(order["orderId"])
    charge_id = await charge_of(own, order, 1)
    for status in ("needs_response", "lost"):
        await charged_back(own, shop, order, charge_id, 2500, status)
    dispute = await open_dispute(own.context, *ids, DisputeReason.NOT_RECEIVED, 1000, "Nothing came", ())
    await new_card(own, shop, order)
    await withdraw_dispute(own.context, ids[0], dispute.dispute_id)
    await paid_on_three_days(own, shop, order)


async def test_after_a_loss_the_next_payment_is_not_overdue_and_asks_for_another_card(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    charge_id = await charge_of(own, order, 1)
    for status in ("needs_response", "lost"):
        await charged_back(own, shop, order, charge_id, 2500, status)
    assert await told_of_card(own) == 1
    ids = shop.merchant_id, UUID(order["orderId"])
    detail = await manage_plan.find_plan(own.context, own.context.vault.consumer_id(PHONE), *ids)
    assert detail is not None
    assert [item.state for item in detail.shown.plan[1:]] == ["scheduled"] * 3
    assert detail.shown.needs_card
    assert "another card is needed" in next_words(detail.shown, own.context.now())
    with pytest.raises(Problem) as raised:
        await manage_plan.pay_early(own.context, detail, [2], 2500, Asker(PHONE))
    assert raised.value.notice == OTHER_CARD


async def lost(own: Own, shop: Merchant, order: dict[str, Any], reason: str = "fraudulent") -> None:
    charge_id = await charge_of(own, order, 1)
    for status in ("needs_response", "lost"):
        await charged_back(own, shop, order, charge_id, 2500, status, reason)


@pytest.mark.parametrize("reason", ["fraudulent", "product_not_received"])
async def test_a_card_that_lost_a_chargeback_is_refused_if_the_consumer_enters_it_again_for_the_order(
    own: Own, reason: str
) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop, OURS)
    await lost(own, shop, order, reason)
    with pytest.raises(Problem) as raised:
        await new_card(own, shop, order, OURS)
    assert raised.value.notice == CHARGED_BACK
    await new_card(own, shop, order)
    await paid_on_three_days(own, shop, order)


async def test_a_new_checkout_refuses_a_card_that_somebody_else_used(own: Own) -> None:
    shop = own.auto_merchant
    await lost(own, shop, await bought(own, shop, OURS))
    with pytest.raises(Problem) as raised:
        await bought(own, shop, OURS)
    assert raised.value.notice == CHARGED_BACK


async def test_a_new_checkout_accepts_the_card_of_a_consumer_who_never_got_the_goods(own: Own) -> None:
    shop = own.auto_merchant
    await lost(own, shop, await bought(own, shop, OURS), "product_not_received")
    assert await charge_of(own, await bought(own, shop, OURS), 1)


async def test_another_plan_of_a_card_that_lost_a_chargeback_goes_on(own: Own) -> None:
    shop = own.auto_merchant
    other, order = await bought(own, shop, OURS), await bought(own, shop, OURS)
    await lost(own, shop, order)
    await paid_early(own, shop, other, 2)
    assert await charge_of(own, other, 2)


async def test_a_card_that_is_entered_again_while_its_chargeback_is_open_pays_nothing_after_the_loss(
    own: Own,
) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop, OURS)
    charge_id = await charge_of(own, order, 1)
    await charged_back(own, shop, order, charge_id, 2500, "needs_response")
    await new_card(own, shop, order, OURS)
    await charged_back(own, shop, order, charge_id, 2500, "lost")
    assert await told_of_card(own) == 1
    with pytest.raises(Problem) as raised:
        await paid_early(own, shop, order, 2)
    assert raised.value.notice == OTHER_CARD


async def test_an_erasure_removes_the_hashes_of_earlier_cards_from_charges(own: Own) -> None:
    shop = own.merchant
    order = await bought(own, shop, OURS)
    await new_card(own, shop, order)
    kept = "SELECT card_hash FROM charges WHERE card_hash IS NOT NULL"
    assert len(await own.context.pool.fetch(kept)) == 1
    assert (await shop.move(order, "void", "100.00")).status_code == 200
    await return_money(own.context)
    async with own.owner() as owner:
        await owner.execute("UPDATE messages SET state = 'sent', try_at = NULL WHERE state = 'pending'")
    erased = await erase_consumer(own.context, PHONE, dry_run=False)
    assert erased.done, erased
    assert await own.context.pool.fetch(kept) == []
