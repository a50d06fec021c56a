"""Several chargebacks of one payment, and chargebacks beside a refund: the shop gives each cent once, and the consumer loses none."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.dispute.dispute import DisputeReason
from cuota.db.plan import charges
from cuota.db.plan.charges import failed_refunds
from cuota.db.verify.recalculate import verify
from cuota.flows.dispute.answer_dispute import accept_dispute
from cuota.flows.dispute.close_disputes import settle_due_disputes
from cuota.flows.dispute.open_dispute import open_dispute
from cuota.flows.order.pay_refund_otherwise import pay_refund_otherwise
from cuota.flows.order.return_money import return_money
from cuota.flows.plan import manage_plan
from cuota.flows.plan.limit_asks import Asker
from cuota.rails.card.protocol import CardEventKind
from cuota.web.pages.account.view import return_words
from support.flows.processor import charged_back, happens
from support.makers import complete
from support.own_service import Own

PHONE = "2125550187"
NO_CREDIT = "credit_not_processed"


async def withheld(own: Own, kind: str = "chargeback") -> list[int]:
    rows = await own.context.pool.fetch(
        "SELECT withheld FROM disputes WHERE kind = $1 ORDER BY opened_at, dispute_id", kind
    )
    return [row["withheld"] for row in rows]


async def totals(own: Own) -> tuple[int, int]:
    """Return the cents that the shop has refunded, and the cents that Cuota has lost. The books are right."""
    assert (await verify(own.context.pool)).disagreements == []
    [order] = await own.context.pool.fetch("SELECT refunded FROM orders")
    [lost] = await own.context.pool.fetch(
        "SELECT coalesce(sum(amount), 0)::bigint AS lost FROM transfers WHERE posting = 'chargeback_loss'"
    )
    return order["refunded"], lost["lost"]


async def refunds_go_out(own: Own) -> None:
    for _ in range(3):
        own.service.clock.ahead += timedelta(hours=3)
        await return_money(own.context)


async def two_payments(own: Own) -> dict[str, Any]:
    """Return an order of 100.00 with two paid payments of 25.00, of which a refund of 60.00 returned 10.00 to the second."""
    shop = own.auto_merchant
    order = await shop.create("100.00")
    await complete(own.service, shop.merchant_id, order, phone=PHONE)
    consumer_id = own.context.vault.consumer_id(PHONE)
    detail = await manage_plan.find_plan(own.context, consumer_id, shop.merchant_id, UUID(order["orderId"]))
    assert detail is not None
    await manage_plan.pay_early(own.context, detail, [2], 2500, Asker(PHONE))
    assert (await shop.move(order, "refund", "60.00")).status_code == 200
    assert await return_money(own.context) == 1
    return order


async def partly_refunded(own: Own) -> dict[str, Any]:
    """Return an order of 100.00 whose refund of 85.00 sent 10.00 to the card, which failed. The shop still has 15.00."""
    order = await own.auto_merchant.approved("100.00")
    assert (await own.auto_merchant.move(order, "refund", "85.00")).status_code == 200
    assert await return_money(own.context) == 1
    [row] = await own.context.pool.fetch("SELECT card_refund_id FROM card_refunds")
    await happens(own, order, CardEventKind.REFUND_FAILED, refund_id=row["card_refund_id"], reason="closed")
    return order


async def test_the_chargebacks_of_a_payment_withhold_no_more_than_the_payment(own: Own) -> None:
    """Each payment is 25.00 and a fee of 5.00. The shop bears no part of the fee."""
    order = await own.auto_merchant.approved("100.00", merchantFeeForPaymentPlan="20.00")
    for name in ("a", "b"):
        await charged_back(own, order, name, 1500, "needs_response")
    assert await withheld(own) == [1500, 1000]


@pytest.mark.parametrize("sequence", ["cab", "abc", "bac", "bca"])
async def test_cuota_loses_only_what_was_refunded_before_however_the_chargebacks_end(
    own: Own, sequence: str
) -> None:
    order = await two_payments(own)
    found = {"a": (1500, 2), "b": (1000, 2), "c": (2500, 1)}
    for name, (cents, payment) in found.items():
        await charged_back(own, order, name, cents, "needs_response", payment=payment)
    assert await withheld(own) == [1500, 0, 2500]
    for name in sequence:
        cents, payment = found[name]
        await charged_back(own, order, name, cents, "lost", payment=payment)
    assert await totals(own) == (10000, 1000)


async def test_a_lost_chargeback_takes_what_another_one_of_the_payment_withholds(own: Own) -> None:
    """The shop bears the 10.00 of the lost one, although the other one withheld them. Cuota loses nothing."""
    order = await two_payments(own)
    found = {"a": (1500, 2), "b": (1000, 2), "c": (2500, 1)}
    for name, (cents, payment) in found.items():
        await charged_back(own, order, name, cents, "needs_response", payment=payment)
    await charged_back(own, order, "b", 1000, "lost", payment=2)
    assert await withheld(own) == [500, 0, 2500]
    await charged_back(own, order, "a", 1500, "won", payment=2)
    await charged_back(own, order, "c", 2500, "won")
    assert await totals(own) == (7000, 0)


@pytest.mark.parametrize("sequence", ["ab", "ba"])
async def test_chargebacks_of_one_payment_leave_the_dispute_about_another_payment_alone(
    own: Own, sequence: str
) -> None:
    order = await two_payments(own)
    ids = own.auto_merchant.merchant_id, UUID(order["orderId"])
    found = {"a": 1500, "b": 1000}
    await charged_back(own, order, "a", 1500, "needs_response", payment=2)
    mine = await open_dispute(own.context, *ids, DisputeReason.NOT_AS_DESCRIBED, 2500, "Broken.")
    await charged_back(own, order, "b", 1000, "needs_response", payment=2)
    for name in sequence:
        await charged_back(own, order, name, found[name], "lost", payment=2)
    assert await withheld(own, "dispute") == [2500]
    await accept_dispute(own.context, ids[0], mine.dispute_id)
    await settle_due_disputes(own.context)
    await refunds_go_out(own)
    assert await totals(own) == (10000, 1000)


async def test_a_chargeback_that_replaces_a_refund_takes_nothing_from_the_consumers_dispute(own: Own) -> None:
    order = await partly_refunded(own)
    ids = own.auto_merchant.merchant_id, UUID(order["orderId"])
    mine = await open_dispute(own.context, *ids, DisputeReason.NOT_AS_DESCRIBED, 1500, "Broken.")
    await charged_back(own, order, "a", 1000, "needs_response", NO_CREDIT)
    assert await withheld(own, "dispute") == [1500]
    await charged_back(own, order, "a", 1000, "lost", NO_CREDIT)
    await accept_dispute(own.context, ids[0], mine.dispute_id)
    await settle_due_disputes(own.context)
    await refunds_go_out(own)
    refunded, _ = await totals(own)
    assert refunded == 10000


async def test_the_shop_can_refund_the_rest_while_a_chargeback_replaces_a_refund(own: Own) -> None:
    order = await partly_refunded(own)
    await charged_back(own, order, "a", 1000, "needs_response", NO_CREDIT)
    answer = await own.auto_merchant.move(order, "refund", "15.00")
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("sequence", ["ab", "ba"])
async def test_only_one_of_two_chargebacks_replaces_a_refund(own: Own, sequence: str) -> None:
    order = await partly_refunded(own)
    for name in ("a", "b"):
        await charged_back(own, order, name, 1000, "needs_response", NO_CREDIT)
    assert await withheld(own) == [0, 1000]
    for name in sequence:
        await charged_back(own, order, name, 1000, "lost", NO_CREDIT)
    refunded, _ = await totals(own)
    assert refunded == 9500
    assert await failed_refunds(own.context.pool, 10) == []


async def test_a_lost_chargeback_lowers_what_others_of_the_payment_withhold_even_if_other_money_is_free(
    own: Own,
) -> None:
    order = await two_payments(own)
    for name, cents in (("a", 1500), ("b", 1000)):
        await charged_back(own, order, name, cents, "needs_response", payment=2)
    await charged_back(own, order, "b", 1000, "lost", payment=2)
    assert await withheld(own) == [500, 0]
    await charged_back(own, order, "c", 2500, "needs_response")
    await charged_back(own, order, "c", 2500, "lost")
    await charged_back(own, order, "a", 1500, "won", payment=2)
    assert await totals(own) == (9500, 0)


async def test_the_shop_can_refund_a_payment_that_no_bank_took_back(own: Own) -> None:
    order = await two_payments(own)
    for name, cents in (("a", 1500), ("b", 1000)):
        await charged_back(own, order, name, cents, "needs_response", payment=2)
    await charged_back(own, order, "b", 1000, "lost", payment=2)
    answer = await own.auto_merchant.move(order, "refund", "25.00")
    assert answer.status_code == 200, answer.text


async def test_what_a_chargeback_withholds_is_not_refunded_although_refunds_of_the_payment_wait(
    own: Own,
) -> None:
    """A refund during the chargeback waits, so the chargeback may replace it. Its 15.00 stay with the shop all the same."""
    order = await own.auto_merchant.approved("100.00")
    assert (await own.auto_merchant.move(order, "refund", "75.00")).status_code == 200
    await charged_back(own, order, "a", 1500, "needs_response", NO_CREDIT)
    assert (await own.auto_merchant.move(order, "refund", "10.00")).status_code == 200
    assert (await own.auto_merchant.move(order, "refund", "5.00")).status_code == 422
    await charged_back(own, order, "a", 1500, "lost", NO_CREDIT)
    await refunds_go_out(own)
    refunded, _ = await totals(own)
    assert refunded == 9000


async def test_a_claimed_refund_is_sent_without_the_part_that_a_chargeback_returned_meanwhile(
    own: Own,
) -> None:
    order = await own.auto_merchant.approved("100.00")
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    [claimed] = await charges.claim_refunds(own.context.pool, own.context.now(), 1)
    for status in ("needs_response", "lost"):
        await charged_back(own, order, "a", 2400, status)
    assert not await charges.ask(own.context.pool, claimed)
    await refunds_go_out(own)
    [sent] = await own.context.pool.fetch("SELECT amount FROM card_simulator.refunds")
    assert sent["amount"] == 100
    await totals(own)


async def test_the_shop_does_not_pay_a_refund_again_that_the_operator_paid_in_another_way(own: Own) -> None:
    order = await partly_refunded(own)
    [row] = await own.context.pool.fetch("SELECT card_refund_id FROM card_refunds")
    await pay_refund_otherwise(own.context, row["card_refund_id"])
    for status in ("needs_response", "lost"):
        await charged_back(own, order, "a", 1000, status, NO_CREDIT)
    assert await totals(own) == (8500, 1000)


async def test_of_a_refund_that_fails_later_only_the_part_that_went_to_the_card_is_owed_again(
    own: Own,
) -> None:
    order = await own.auto_merchant.approved("100.00")
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    for status in ("needs_response", "lost"):
        await charged_back(own, order, "a", 2400, status)
    await refunds_go_out(own)
    [row] = await own.context.pool.fetch("SELECT card_refund_id FROM card_refunds")
    await happens(own, order, CardEventKind.REFUND_FAILED, refund_id=row["card_refund_id"], reason="closed")
    assert [each.amount for each in await failed_refunds(own.context.pool, 10)] == [100]
    assert (await verify(own.context.pool)).disagreements == []


async def test_the_plans_page_says_which_part_of_a_refund_went_to_the_card(own: Own) -> None:
    shop = own.auto_merchant
    order = await shop.create("100.00")
    await complete(own.service, shop.merchant_id, order, phone=PHONE)
    assert (await shop.move(order, "refund", "100.00")).status_code == 200
    for status in ("needs_response", "lost"):
        await charged_back(own, order, "a", 2400, status)
    await refunds_go_out(own)
    consumer_id = own.context.vault.consumer_id(PHONE)
    detail = await manage_plan.find_plan(own.context, consumer_id, shop.merchant_id, UUID(order["orderId"]))
    assert detail is not None
    [words] = [return_words(detail, each, "Cuota") for each in detail.returns]
    assert words.startswith("$1.00 went back to Visa ending 4242.")
    assert "$24.00 came back to you from the bank of Visa ending 4242" in words
