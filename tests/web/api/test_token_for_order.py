"""The checkout token works wherever the order id does, because old orders of shop systems store only the token."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from cuota.db.pool import Pool
from support.api.bodies import assert_refused
from support.makers import Merchant

OPERATIONS = ["capture", "void", "refund"]


async def half_captured(merchant: Merchant) -> dict[str, Any]:
    order = await merchant.approved("100.00")
    await merchant.move(order, "capture", "60.00", "c-1")
    return order


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_movement_by_the_checkout_token_is_the_same_as_by_the_order_id(
    merchant: Merchant, operation: str
) -> None:
    order = await half_captured(merchant)
    by_token = {"orderId": order["token"]}
    body = {"amount": "1.00", "merchantReference": "same"}
    dry = [
        await merchant.http.post(f"/order/{name}/{operation}?dryRun=true", json=body)
        for name in (order["orderId"], order["token"])
    ]
    assert dry[0].status_code == 200
    assert dry[0].content == dry[1].content
    assert (await merchant.move(by_token, operation, "1.00", "same")).status_code == 200
    # References are unique within the order. A reference that was used with the token is a duplicate with the order id.
    assert_refused(await merchant.move(order, operation, "1.00", "same"), 422, "duplicate_reference")
    assert_refused(await merchant.move(by_token, operation, "1.00", "same"), 422, "duplicate_reference")
    refused = await merchant.move(by_token, operation, "0", "zero")
    assert_refused(refused, 422, "invalid_amount")
    assert refused.json()["balances"]["orderAmount"] in {99, 100}


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_another_merchant_s_checkout_token_gets_the_same_answer_as_an_unknown_order(
    merchant: Merchant, auto_merchant: Merchant, operation: str
) -> None:
    order = await half_captured(merchant)
    answers = [
        await auto_merchant.move({"orderId": name}, operation, "1.00", "x")
        for name in (order["token"], uuid4())
    ]
    for answer in answers:
        assert_refused(answer, 404, "order_not_found")
    seen = [{**answer.json(), "requestId": "", "instance": ""} for answer in answers]
    assert seen[0] == seen[1]
    path = f"/order/{order['token']}/{operation}?dryRun=true"
    dry = await auto_merchant.http.post(path, json={"amount": 1, "merchantReference": "x"})
    assert_refused(dry, 404, "order_not_found")


async def test_an_order_id_needs_no_extra_round_trip(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await merchant.approved("100.00")
    asked: list[str] = []
    real = Pool.fetchrow

    async def noting(self: Pool, sql: str, *values: object) -> Any:
        asked.append(sql)
        return await real(self, sql, *values)

    monkeypatch.setattr(Pool, "fetchrow", noting)
    assert (await merchant.move(order, "capture", "1.00")).status_code == 200
    assert not [sql for sql in asked if "token" in sql]
    assert (await merchant.move({"orderId": order["token"]}, "capture", "1.00")).status_code == 200
    assert len([sql for sql in asked if "token" in sql]) == 1
