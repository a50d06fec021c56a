"""Tests of `GET /order/{orderId}` and `GET /order?token=`."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from support.api.bodies import assert_refused
from support.makers import Merchant, complete

FIELDS = {
    "orderId", "orderStatus", "paymentState", "amount", "originalAmount", "currency", "consumer", "billing", "shipping",
    "description", "items", "merchant", "merchantReference", "taxAmount", "shippingAmount", "token", "promotions",
    "capturedAmount", "voidedAmount", "refundedAmount", "createdDateTime", "expiryDateTime",
    "authorizationExpiryDateTime", "metadata", "merchantFeeForPaymentPlan", "warnings", "captures", "voids", "refunds",
}  # fmt: skip


async def test_id_token_and_query_read_the_same_record(merchant: Merchant) -> None:
    order = await merchant.create()
    reads = [
        await merchant.http.get(path)
        for path in (
            f"/order/{order['orderId']}",
            f"/order/{order['token']}",
            f"/order?token={order['token']}",
            f"/order/{order['orderId'].upper()}",
            f"/order/{order['orderId']}/",
        )
    ]
    assert [answer.status_code for answer in reads] == [200] * 5
    assert len({answer.content for answer in reads}) == 1


async def test_the_record_has_every_field_and_null_for_fields_without_a_value(merchant: Merchant) -> None:
    record = await merchant.read(await merchant.create())
    assert set(record) == FIELDS
    empty = ("consumer", "billing", "shipping", "description", "items", "promotions", "taxAmount", "shippingAmount", "authorizationExpiryDateTime", "merchantFeeForPaymentPlan")  # fmt: skip
    assert [record[name] for name in empty] == [None] * len(empty)
    assert record["metadata"] == {}
    assert record["captures"] == record["voids"] == record["refunds"] == record["warnings"] == []
    assert (record["orderStatus"], record["paymentState"], record["currency"]) == ("Created", "NONE", "USD")


async def test_fields_without_a_value_inside_an_object_are_null(merchant: Merchant) -> None:
    created = await merchant.create(consumer={"givenNames": "Jo"}, items=[{"name": "Shoe"}])
    record = await merchant.read(created)
    assert record["consumer"] == {"givenNames": "Jo", "surname": None, "email": None, "phoneNumber": None}
    assert record["items"] == [
        {"name": "Shoe", "description": None, "sku": None, "quantity": None, "price": None}
    ]


async def test_an_approved_order_is_authorized_for_13_days(merchant: Merchant) -> None:
    record = await merchant.read(await merchant.approved("80.00"))
    assert (record["orderStatus"], record["paymentState"]) == ("Approved", "AUTHORIZED")
    created = datetime.fromisoformat(record["createdDateTime"])
    ends = datetime.fromisoformat(record["authorizationExpiryDateTime"])
    assert timedelta(days=13) <= ends - created < timedelta(days=13, minutes=5)


async def test_an_auto_captured_order_is_captured_completely_at_the_approval(auto_merchant: Merchant) -> None:
    record = await auto_merchant.read(await auto_merchant.approved("80.00"))
    assert (record["orderStatus"], record["paymentState"]) == ("Approved", "CAPTURED")
    assert record["capturedAmount"] == record["amount"] == 80
    assert [capture["amount"] for capture in record["captures"]] == [80]


async def test_an_order_that_risk_declines_has_the_status_declined(merchant: Merchant) -> None:
    from dataclasses import replace

    from support.makers import PROFILE

    order = await merchant.create()
    profile = replace(PROFILE, surname="Declinetest")
    await complete(merchant.service, merchant.merchant_id, order, profile=profile)
    record = await merchant.read(order)
    assert (record["orderStatus"], record["paymentState"]) == ("Declined", "NONE")


async def test_voids_reduce_the_amount_and_the_movements_are_listed(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    await merchant.move(order, "capture", "40.00", "c-1")
    await merchant.move(order, "capture", "10.00", "c-2")
    await merchant.move(order, "void", "30.00", "v-1")
    await merchant.move(order, "refund", "5.00", "r-1")
    record = await merchant.read(order)
    assert (record["amount"], record["originalAmount"]) == (70, 100)
    sums = (record["capturedAmount"], record["voidedAmount"], record["refundedAmount"])
    assert sums == (50, 30, 5)
    assert [item["merchantReference"] for item in record["captures"]] == ["c-1", "c-2"]
    assert [item["merchantReference"] for item in record["voids"]] == ["v-1"]
    assert [item["merchantReference"] for item in record["refunds"]] == ["r-1"]
    assert set(record["voids"][0]) == {"merchantReference", "amount", "dateTime"}
    assert set(record["refunds"][0]) == {"id", "refundedDateTime", "merchantReference", "amount"}
    assert record["paymentState"] == "PARTIALLY_CAPTURED"


@pytest.mark.parametrize(
    "name",
    [
        "nobody", "1", "..%2fconfiguration", "%2e%2e%2f", "%2e%2e", "%00", "1'%20OR%20'1'='1", "%d9%a3", "x" * 7_000, "*",
        "00000000-0000-0000-0000-000000000000", "019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c1", "{019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c11}",
        "urn:uuid:019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c11", "019aa3c47b107c3e9a512f6d8e0b4c11", "%ff%fe", "null", "-1",
        "019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c1%0a", "019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c11%00",
    ],
)  # fmt: skip
async def test_a_malformed_id_is_an_unknown_order(merchant: Merchant, name: str) -> None:
    answer = await merchant.http.get(f"/order/{name}", headers={"x-no-contract": "1"})
    assert answer.status_code == 404
    assert answer.json()["code"] in {"order_not_found", "not_found"}
    for operation in ("capture", "void", "refund"):
        body = {"amount": 1, "merchantReference": "x"}
        moved = await merchant.http.post(
            f"/order/{name}/{operation}", json=body, headers={"x-no-contract": "1"}
        )
        assert moved.status_code == 404


async def test_a_malformed_id_and_an_unknown_id_get_the_same_answer(merchant: Merchant) -> None:
    answers = [await merchant.http.get(f"/order/{name}") for name in (uuid4(), "nobody")]
    bodies = [answer.json() for answer in answers]
    for body in bodies:
        del body["requestId"], body["instance"]
    assert bodies[0] == bodies[1]


async def test_a_query_without_a_token_says_what_is_missing(merchant: Merchant) -> None:
    for path in ("/order", "/order?token="):
        answer = await merchant.http.get(path)
        assert_refused(answer, 400, "validation_failed")
        assert answer.json()["errors"][0]["field"] == "token"
    assert_refused(await merchant.http.get(f"/order?token={uuid4()}"), 404, "order_not_found")


async def test_a_success_answer_has_neither_errors_nor_message(merchant: Merchant) -> None:
    order = await merchant.approved()
    moved = await merchant.move(order, "capture", "1.00")
    for body in (order, moved.json(), await merchant.read(order)):
        assert not {"errors", "message"} & set(body)
