"""Tests of `POST /order/{orderId}/refund`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import pytest

from cuota.db.pool import Row
from cuota.flows.order.return_money import return_money
from support.api.bodies import assert_refused
from support.makers import Merchant


async def refund(merchant: Merchant, order: dict[str, Any], amount: object, **keys: object) -> httpx.Response:
    return await merchant.http.post(f"/order/{order['orderId']}/refund", json={"amount": amount, **keys})


async def captured(merchant: Merchant, amount: str = "100.00", **more: object) -> dict[str, Any]:
    order = await merchant.approved(amount, **more)
    assert (await merchant.move(order, "capture", amount)).status_code == 200
    return order


async def card_refunds(merchant: Merchant, order: dict[str, Any]) -> list[Row]:
    return await merchant.service.context.pool.fetch(
        "SELECT amount, state FROM card_refunds WHERE merchant_id = $1 AND order_id = $2",
        merchant.merchant_id, order["orderId"],
    )  # fmt: skip


async def test_the_answer_to_a_refund_has_its_id_time_reference_and_amount(merchant: Merchant) -> None:
    order = await captured(merchant)
    answer = await refund(merchant, order, "40.10", merchantRefundReference="back-1")
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"id", "refundedDateTime", "merchantReference", "amount"}
    assert UUID(body["id"])
    assert body["merchantReference"] == "back-1"
    assert '"amount":40.10' in answer.text
    record = await merchant.read(order)
    assert record["refunds"] == [body]
    assert (record["refundedAmount"], record["amount"], record["paymentState"]) == (40.1, 100, "CAPTURED")


@pytest.mark.parametrize("name", ["merchantRefundReference", "merchantReference"])
async def test_both_names_of_the_reference_are_accepted(merchant: Merchant, name: str) -> None:
    answer = await refund(merchant, await captured(merchant), 1, **{name: "k-1"})
    assert answer.status_code == 200
    assert answer.json()["merchantReference"] == "k-1"


@pytest.mark.parametrize(("first", "second"), [("k-1", "k-1"), (7, "7"), ("k-1", None), (None, "k-1")])
async def test_both_names_of_the_reference_may_be_sent_if_they_are_equal(
    merchant: Merchant, first: object, second: object
) -> None:
    order = await captured(merchant)
    answer = await refund(merchant, order, 1, merchantRefundReference=first, merchantReference=second)
    assert answer.status_code == 200, answer.text
    assert answer.json()["merchantReference"] == str(first or second)


async def test_two_different_keys_are_refused(merchant: Merchant) -> None:
    order = await captured(merchant)
    answer = await refund(merchant, order, 1, merchantRefundReference="a", merchantReference="b")
    assert_refused(answer, 422, "missing_reference")
    assert (await merchant.read(order))["refundedAmount"] == 0


async def test_both_names_of_the_reference_are_the_same_key(merchant: Merchant) -> None:
    order = await captured(merchant)
    first = await refund(merchant, order, 1, merchantRefundReference="k-1")
    again = await refund(merchant, order, 1, merchantReference="k-1")
    assert_refused(again, 422, "duplicate_reference")
    assert again.json()["original"] == {
        "operation": "refund", "id": first.json()["id"], "amount": 1,
        "dateTime": first.json()["refundedDateTime"], "sameRequest": True,
    }  # fmt: skip


async def test_a_refund_is_limited_by_the_captured_amount_and_not_by_the_order_s_amount(
    merchant: Merchant,
) -> None:
    order = await merchant.approved("100.00")
    await merchant.move(order, "capture", "30.00")
    over = await merchant.move(order, "refund", "30.01")
    assert_refused(over, 422, "refund_exceeds_captured")
    assert over.json()["balances"]["refundable"] == 30
    assert (await merchant.move(order, "refund", "10.00")).status_code == 200
    assert_refused(await merchant.move(order, "refund", "20.01"), 422, "refund_exceeds_captured")
    assert (await merchant.move(order, "refund", "20.00")).status_code == 200
    assert_refused(await merchant.move(order, "refund", "0.01"), 422, "refund_exceeds_captured")


async def test_a_rejected_refund_releases_its_key(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    assert_refused(await merchant.move(order, "refund", "50.00", "r-1"), 422, "refund_exceeds_captured")
    await merchant.move(order, "capture", "50.00")
    assert (await merchant.move(order, "refund", "50.00", "r-1")).status_code == 200


async def test_concurrent_refunds_never_exceed_the_captured_amount(merchant: Merchant) -> None:
    import asyncio

    order = await captured(merchant)
    answers = await asyncio.gather(*(merchant.move(order, "refund", "30.00") for _ in range(12)))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [422] * 9
    assert (await merchant.read(order))["refundedAmount"] == 90


@pytest.mark.parametrize("operation", ["capture", "void", "refund"])
async def test_a_key_belongs_to_one_operation_of_one_order(merchant: Merchant, operation: str) -> None:
    for order in (await captured(merchant, "50.00"), await captured(merchant, "60.00")):
        answer = await merchant.move(order, "refund", "1.00", "shared")
        assert answer.status_code == 200
    fresh = await merchant.approved("50.00")
    await merchant.move(fresh, "capture", "1.00", "c")
    assert (await merchant.move(fresh, operation, "1.00", "shared")).status_code == 200


async def test_a_refund_first_reduces_the_plan_and_the_rest_goes_back_to_the_card(
    auto_merchant: Merchant,
) -> None:
    # The first worked example: an order of 200.00 with one paid installment, and a refund of 160.00.
    order = await auto_merchant.approved("200.00")
    assert (await auto_merchant.move(order, "refund", "160.00")).status_code == 200
    rows = await auto_merchant.service.context.pool.fetch(
        "SELECT amount, returned FROM installments WHERE merchant_id = $1 AND order_id = $2 ORDER BY number",
        auto_merchant.merchant_id, order["orderId"],
    )  # fmt: skip
    assert [row["amount"] for row in rows] == [4000, 0, 0, 0]
    assert rows[0]["returned"] == 1000
    assert [row["amount"] for row in await card_refunds(auto_merchant, order)] == [1000]


async def test_the_amount_for_the_card_is_sent_to_the_rail_and_recorded(auto_merchant: Merchant) -> None:
    context = auto_merchant.service.context
    order = await auto_merchant.approved("100.00")
    await auto_merchant.move(order, "refund", "100.00")
    assert [(row["amount"], row["state"]) for row in await card_refunds(auto_merchant, order)] == [
        (2500, "pending")
    ]
    while await return_money(context):
        pass
    assert [row["state"] for row in await card_refunds(auto_merchant, order)] == ["succeeded"]
    back = await context.pool.fetchrow(
        "SELECT sum(s.refunded)::bigint AS cents FROM card_simulator.charges s JOIN charges c ON c.charge_id = s.key"
        " WHERE c.merchant_id = $1 AND c.order_id = $2",
        auto_merchant.merchant_id, order["orderId"],
    )  # fmt: skip
    assert back is not None
    assert back["cents"] == 2500
    posted = await context.pool.fetch(
        "SELECT amount FROM transfers WHERE merchant_id = $1 AND order_id = $2 AND posting = 'card_refund'",
        auto_merchant.merchant_id, order["orderId"],
    )  # fmt: skip
    assert [row["amount"] for row in posted] == [2500]


async def test_a_full_refund_returns_the_whole_fee_of_the_plan(auto_merchant: Merchant) -> None:
    order = await auto_merchant.approved("100.00", merchantFeeForPaymentPlan="4.00")
    await auto_merchant.move(order, "refund", "50.00")
    await auto_merchant.move(order, "refund", "50.00")
    # One installment was paid: 25.00, plus 1.00 of the fee.
    assert sum(row["amount"] for row in await card_refunds(auto_merchant, order)) == 2600
