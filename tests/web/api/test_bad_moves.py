"""Inputs that break payment services, for capture, void and refund: one test for each row C (calls) and G (ids) of
bad_inputs.csv."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cuota.flows.checkout.leave_checkout import leave_checkout
from support.api.bad_moves import AMOUNTS, OPERATIONS
from support.api.bodies import JSON, assert_refused
from support.makers import PROFILE, Merchant, complete


async def raw(merchant: Merchant, order: dict[str, Any], operation: str, content: bytes) -> httpx.Response:
    return await merchant.http.post(f"/order/{order['orderId']}/{operation}", content=content, headers=JSON)


async def half_captured(merchant: Merchant) -> dict[str, Any]:
    order = await merchant.approved("100.00")
    assert (await merchant.move(order, "capture", "50.00", "half")).status_code == 200
    return order


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_c01_an_unusable_amount_is_422_and_moves_nothing(merchant: Merchant, operation: str) -> None:
    order = await half_captured(merchant)
    before = await merchant.read(order)
    answers = [await raw(merchant, order, operation, b'{"merchantReference":"x"}')]
    for literal in AMOUNTS:
        content = f'{{"merchantReference":"x","amount":{literal}}}'.encode()
        answers.append(await raw(merchant, order, operation, content))
    for answer in answers:
        assert_refused(answer, 422, "invalid_amount")
        assert answer.json()["errors"][0]["field"] == "amount"
        assert answer.json()["balances"]["captured"] == 50
    assert await merchant.read(order) == before


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_c01_a_plain_decimal_string_is_an_amount(merchant: Merchant, operation: str) -> None:
    order = await half_captured(merchant)
    for amount in ("1", "1.5", "0.01", "2.5000"):
        assert (await merchant.move(order, operation, amount)).status_code == 200


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_c02_a_movement_without_a_usable_reference_is_422(merchant: Merchant, operation: str) -> None:
    order = await half_captured(merchant)
    bad = [None, "", "k" * 101, "k" * 256, {}, [], True, 1.5, "a\nb"]
    for body in [{"amount": 1}, *({"amount": 1, "merchantReference": key} for key in bad)]:
        answer = await merchant.http.post(f"/order/{order['orderId']}/{operation}", json=body)
        assert_refused(answer, 422, "missing_reference")
        assert answer.json()["errors"][0]["field"] == "merchantReference"
        assert "balances" in answer.json()


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_c02_a_number_or_a_text_of_100_characters_is_a_valid_reference(
    merchant: Merchant, operation: str
) -> None:
    order = await half_captured(merchant)
    for key in (7, 10**18, "k" * 100, "ключ"):
        body = {"amount": 1, "merchantReference": key}
        answer = await merchant.http.post(f"/order/{order['orderId']}/{operation}", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["merchantReference"] == str(key)
    again = await merchant.move(order, operation, 1, "7")
    assert_refused(again, 422, "duplicate_reference")


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"amount":1,"amount":1}', b'{"amount":NaN}', b"\xff", b'{"merchantReference":"\\u0000"}'])  # fmt: skip
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_body_that_is_not_json_is_malformed(
    merchant: Merchant, operation: str, content: bytes
) -> None:
    order = await merchant.create()
    assert_refused(await raw(merchant, order, operation, content), 400, "malformed_request")


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_c05_only_completed_orders_can_be_captured_voided_and_refunded(
    merchant: Merchant, operation: str
) -> None:
    from dataclasses import replace
    from uuid import UUID

    created, declined, abandoned = [await merchant.create() for _ in range(3)]
    risky = replace(PROFILE, surname="Declinetest")
    await complete(merchant.service, merchant.merchant_id, declined, profile=risky)
    await leave_checkout(merchant.service.context, merchant.merchant_id, UUID(abandoned["orderId"]))
    for order, status in ((created, "Created"), (declined, "Declined"), (abandoned, "Abandoned")):
        answer = await merchant.move(order, operation, "1.00")
        assert_refused(answer, 422, "order_not_completed")
        assert status in answer.json()["message"]
        assert set(answer.json()["balances"]) == {
            "orderAmount", "captured", "voided", "refunded", "capturable", "voidable", "refundable",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "code"),
    [("capture", "capture_exceeds_authorized"), ("void", "void_exceeds_uncaptured"), ("refund", "refund_exceeds_captured")],
)  # fmt: skip
async def test_c06_c07_the_remaining_amount_is_allowed_and_a_cent_more_is_not(
    merchant: Merchant, operation: str, code: str
) -> None:
    order = await half_captured(merchant)
    assert_refused(await merchant.move(order, operation, "50.01"), 422, code)
    assert_refused(await merchant.move(order, operation, "9999999999999999.99"), 422, code)
    assert (await merchant.move(order, operation, "50.00")).status_code == 200
    assert_refused(await merchant.move(order, operation, "0.01"), 422, code)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_c09_c10_c11_a_repeated_request_gets_the_original_movement(
    merchant: Merchant, operation: str
) -> None:
    order = await half_captured(merchant)
    first = await raw(merchant, order, operation, b'{"merchantReference":"k","amount":10}')
    assert first.status_code == 200
    when = first.json().get("dateTime") or first.json()["refundedDateTime"]
    for literal in ("10", "10.0", "10.00", "1e1", '"10.00"'):
        content = f'{{"merchantReference":"k","amount":{literal}}}'.encode()
        again = await raw(merchant, order, operation, content)
        assert_refused(again, 422, "duplicate_reference")
        original = again.json()["original"]
        assert (original["operation"], original["amount"], original["dateTime"]) == (operation, 10, when)
        assert original["sameRequest"] is True
    other = await raw(merchant, order, operation, b'{"merchantReference":"k","amount":9}')
    assert_refused(other, 422, "duplicate_reference")
    assert other.json()["original"]["sameRequest"] is False
    assert other.json()["original"]["amount"] == 10


async def test_c13_a_key_can_be_used_on_another_order_and_for_another_operation(merchant: Merchant) -> None:
    first, second = await half_captured(merchant), await half_captured(merchant)
    for order in (first, second):
        for operation in OPERATIONS:
            assert (await merchant.move(order, operation, "1.00", "same")).status_code == 200


async def test_c15_an_auto_captured_order_has_nothing_left_to_capture(auto_merchant: Merchant) -> None:
    order = await auto_merchant.approved("10.00")
    answer = await auto_merchant.move(order, "capture", "10.00")
    assert_refused(answer, 422, "capture_exceeds_authorized")


async def test_c19_a_capture_whose_client_disconnects_is_applied_once_or_not_at_all(
    merchant: Merchant,
) -> None:
    order = await merchant.approved("100.00")
    port = int(merchant.service.settings.public_url.rpartition(":")[2])
    content = json.dumps({"amount": "10.00", "merchantReference": "gone"}).encode()
    head = (
        f"POST /order/{order['orderId']}/capture HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: {merchant.http.headers['authorization']}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    for _ in range(5):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode() + content)
        await writer.drain()
        writer.transport.abort()
    again = await merchant.move(order, "capture", "10.00", "gone")
    assert again.status_code == 200 or again.json()["original"]["sameRequest"]
    assert (await merchant.read(order))["capturedAmount"] == 10


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_g01_an_unknown_order_is_404_whatever_the_body_is(merchant: Merchant, operation: str) -> None:
    for body in ({"amount": 1, "merchantReference": "x"}, {}, {"amount": 0, "merchantReference": "x"}):
        answer = await merchant.http.post(f"/order/{uuid4()}/{operation}", json=body)
        assert_refused(answer, 404, "order_not_found")
