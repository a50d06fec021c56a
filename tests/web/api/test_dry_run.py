"""`?dryRun=true` returns the result of a call without changing anything."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.api.bodies import assert_refused
from support.makers import Merchant

OPERATIONS = ["capture", "void", "refund"]


async def dry(
    merchant: Merchant, order: dict[str, Any], operation: str, body: dict[str, Any], flag: str = "true"
) -> httpx.Response:
    return await merchant.http.post(f"/order/{order['orderId']}/{operation}?dryRun={flag}", json=body)


async def rows_of(merchant: Merchant, order: dict[str, Any]) -> dict[str, int]:
    """Return the number of the order's rows, and its version."""
    counts = {}
    for table in ("events", "transfers", "movements", "card_refunds", "installments"):
        row = await merchant.service.context.pool.fetchrow(
            f"SELECT count(*) AS rows FROM {table} WHERE merchant_id = $1 AND order_id = $2",
            merchant.merchant_id, order["orderId"],
        )  # fmt: skip
        assert row is not None
        counts[table] = row["rows"]
    order_row = await merchant.service.context.pool.fetchrow(
        "SELECT version FROM orders WHERE merchant_id = $1 AND order_id = $2",
        merchant.merchant_id, order["orderId"],
    )  # fmt: skip
    assert order_row is not None
    return {**counts, "version": order_row["version"]}


async def half_captured(merchant: Merchant) -> dict[str, Any]:
    order = await merchant.approved("100.00")
    await merchant.move(order, "capture", "60.00", "c-1")
    return order


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_dry_run_changes_nothing_and_uses_up_no_key(merchant: Merchant, operation: str) -> None:
    order = await half_captured(merchant)
    record, rows = await merchant.read(order), await rows_of(merchant, order)
    body = {"amount": "40.00", "merchantReference": "d-1"}
    seen = [await dry(merchant, order, operation, body) for _ in range(2)]
    assert [answer.status_code for answer in seen] == [200, 200]
    assert seen[0].content == seen[1].content
    assert await merchant.read(order) == record
    assert await rows_of(merchant, order) == rows
    assert (await merchant.move(order, operation, "40.00", "d-1")).status_code == 200


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_dry_run_returns_the_same_result_as_the_real_call(merchant: Merchant, operation: str) -> None:
    order = await half_captured(merchant)
    body = {"amount": "40.00", "merchantReference": "d-1"}
    told = (await dry(merchant, order, operation, body)).json()
    assert (told["dryRun"], told["operation"], told["amount"]) == (True, operation, 40)
    await merchant.move(order, operation, "40.00", "d-1")
    next_one = (await dry(merchant, order, "refund", {"amount": "0.01", "merchantReference": "d-2"})).json()
    assert told["after"] == next_one["before"]
    assert told["before"] != told["after"] or operation == "capture"


async def test_a_dry_run_shows_the_balances_the_plan_and_the_amount_that_goes_back_to_the_card(
    auto_merchant: Merchant,
) -> None:
    order = await auto_merchant.approved("100.00")
    told = (await dry(auto_merchant, order, "refund", {"amount": 100, "merchantReference": "d"})).json()
    assert told["returnedToCard"] == 25
    assert told["before"]["balances"]["refundable"] == 100
    assert told["after"]["balances"] == {
        "orderAmount": 100, "captured": 100, "voided": 0, "refunded": 100,
        "capturable": 0, "voidable": 0, "refundable": 0,
    }  # fmt: skip
    assert [item["amount"] for item in told["before"]["plan"]] == [25] * 4
    assert [item["amount"] for item in told["after"]["plan"]] == [0] * 4


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"amount": "1.00"}, "missing_reference"),
        ({"amount": 0, "merchantReference": "x"}, "invalid_amount"),
        ({"amount": "100.01", "merchantReference": "x"}, None),
        ({"amount": "1.00", "merchantReference": "used"}, "duplicate_reference"),
    ],
)
async def test_a_dry_run_is_refused_like_the_real_call(
    merchant: Merchant, operation: str, body: dict[str, Any], code: str | None
) -> None:
    order = await half_captured(merchant)
    await merchant.move(order, operation, "1.00", "used")
    rows = await rows_of(merchant, order)
    told = await dry(merchant, order, operation, body)
    assert await rows_of(merchant, order) == rows
    real = await merchant.http.post(f"/order/{order['orderId']}/{operation}", json=body)
    assert told.status_code == real.status_code == 422
    bodies = [answer.json() for answer in (told, real)]
    for shown in bodies:
        del shown["requestId"]
    assert bodies[0] == bodies[1]
    assert code is None or bodies[0]["code"] == code
    # A real refusal may at most write an event. It moves no money.
    after = await rows_of(merchant, order)
    assert {**after, "events": 0, "version": 0} == {**rows, "events": 0, "version": 0}


async def test_a_dry_run_on_an_open_or_unknown_order_is_refused(merchant: Merchant) -> None:
    body = {"amount": 1, "merchantReference": "x"}
    created = await merchant.create()
    assert_refused(await dry(merchant, created, "capture", body), 422, "order_not_completed")
    nobody = {"orderId": "019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c11"}
    assert_refused(await dry(merchant, nobody, "capture", body), 404, "order_not_found")


@pytest.mark.parametrize("flag", ["yes", "TRUE1", "2"])
async def test_an_unclear_value_of_the_parameter_is_refused_and_nothing_is_applied(
    merchant: Merchant, flag: str
) -> None:
    order = await half_captured(merchant)
    answer = await dry(merchant, order, "capture", {"amount": 1, "merchantReference": "x"}, flag)
    assert_refused(answer, 400, "validation_failed")
    assert (await merchant.read(order))["capturedAmount"] == 60


async def test_with_the_value_false_the_call_is_applied(merchant: Merchant) -> None:
    order = await half_captured(merchant)
    answer = await dry(merchant, order, "capture", {"amount": 1, "merchantReference": "x"}, "false")
    assert set(answer.json()) == {"merchantReference", "amount", "dateTime"}
    assert (await merchant.read(order))["capturedAmount"] == 61
