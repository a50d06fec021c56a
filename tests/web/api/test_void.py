"""Tests of `POST /order/{orderId}/void`."""

from __future__ import annotations

import asyncio

import pytest

from support.api.bodies import assert_refused
from support.makers import Merchant


async def test_the_answer_to_a_void_has_its_reference_amount_and_time(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    answer = await merchant.move(order, "void", "30.50", "gone-1")
    assert answer.status_code == 200
    assert set(answer.json()) == {"merchantReference", "amount", "dateTime"}
    assert answer.json()["merchantReference"] == "gone-1"
    assert '"amount":30.50' in answer.text


async def test_a_void_reduces_the_order_and_its_plan_beginning_with_the_last_installment(
    merchant: Merchant,
) -> None:
    order = await merchant.approved("100.00")
    await merchant.move(order, "void", "30.00")
    record = await merchant.read(order)
    assert (record["amount"], record["originalAmount"], record["voidedAmount"]) == (70, 100, 30)
    assert record["paymentState"] == "AUTHORIZED"
    rows = await merchant.service.context.pool.fetch(
        "SELECT amount FROM installments WHERE merchant_id = $1 AND order_id = $2 ORDER BY number",
        merchant.merchant_id, order["orderId"],
    )  # fmt: skip
    assert [row["amount"] for row in rows] == [2500, 2500, 2000, 0]


async def test_the_whole_uncaptured_amount_can_be_voided_and_not_a_cent_more(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    await merchant.move(order, "capture", "60.00")
    over = await merchant.move(order, "void", "40.01")
    assert_refused(over, 422, "void_exceeds_uncaptured")
    assert over.json()["balances"] == {
        "orderAmount": 100, "captured": 60, "voided": 0, "refunded": 0,
        "capturable": 40, "voidable": 40, "refundable": 60,
    }  # fmt: skip
    assert (await merchant.move(order, "void", "40.00")).status_code == 200
    assert_refused(await merchant.move(order, "void", "0.01"), 422, "void_exceeds_uncaptured")
    assert_refused(await merchant.move(order, "capture", "0.01"), 422, "capture_exceeds_authorized")
    assert (await merchant.read(order))["paymentState"] == "CAPTURED"


async def test_a_completely_voided_order_has_the_state_voided(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    assert (await merchant.move(order, "void", "100.00")).status_code == 200
    record = await merchant.read(order)
    assert (record["orderStatus"], record["paymentState"], record["amount"]) == ("Approved", "VOIDED", 0)


async def test_a_captured_order_cannot_be_voided(auto_merchant: Merchant) -> None:
    order = await auto_merchant.approved("100.00")
    assert_refused(await auto_merchant.move(order, "void", "0.01"), 422, "void_exceeds_uncaptured")


async def test_the_same_reference_voids_once_and_a_repetition_gets_the_original_void(
    merchant: Merchant,
) -> None:
    order = await merchant.approved("100.00")
    first = await merchant.move(order, "void", "10.00", "v-1")
    again = await merchant.move(order, "void", "10.0", "v-1")
    assert_refused(again, 422, "duplicate_reference")
    original = again.json()["original"]
    assert original["operation"] == "void"
    assert (original["amount"], original["dateTime"]) == (10, first.json()["dateTime"])
    assert original["sameRequest"] is True
    other = await merchant.move(order, "void", "11.00", "v-1")
    assert other.json()["original"]["sameRequest"] is False
    assert (await merchant.read(order))["voidedAmount"] == 10


async def test_a_duplicate_reference_is_reported_before_any_limit_is_checked(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    await merchant.move(order, "void", "100.00", "v-1")
    assert_refused(await merchant.move(order, "void", "100.00", "v-1"), 422, "duplicate_reference")


async def test_a_rejected_void_releases_its_reference(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    assert_refused(await merchant.move(order, "void", "100.01", "v-1"), 422, "void_exceeds_uncaptured")
    assert (await merchant.move(order, "void", "100.00", "v-1")).status_code == 200


async def test_of_a_concurrent_capture_and_void_of_the_same_amount_exactly_one_is_applied(
    merchant: Merchant,
) -> None:
    for _ in range(10):
        order = await merchant.approved("40.00")
        answers = await asyncio.gather(
            *(merchant.move(order, operation, "40.00") for operation in ("capture", "void"))
        )
        assert sorted(answer.status_code for answer in answers) == [200, 422]
        record = await merchant.read(order)
        assert record["capturedAmount"] + record["voidedAmount"] == 40


@pytest.mark.parametrize("operation", ["capture", "void", "refund"])
async def test_an_order_that_was_never_completed_cannot_be_voided(merchant: Merchant, operation: str) -> None:
    answer = await merchant.move(await merchant.create(), operation, "1.00")
    assert_refused(answer, 422, "order_not_completed")
    assert answer.json()["balances"]["capturable"] == 0
