"""The lenient profile on captures, voids and refunds: a shop that ships is paid even if its floats distort the
amount."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from cuota.core.merchant import BodyProfile
from support.api.bodies import FULL, JSON, assert_refused, changed
from support.makers import Merchant, Running, make_merchant

OPERATIONS = ["capture", "void", "refund"]
LENIENT = {"x-lenient": "1"}


@pytest.fixture
async def lenient(service: Running) -> AsyncIterator[Merchant]:
    """A merchant with the lenient profile."""
    async with make_merchant(service, profile=BodyProfile.LENIENT) as made:
        yield made


async def send(
    merchant: Merchant, order: dict[str, Any], operation: str, amount: str, query: str = "", **headers: str
) -> httpx.Response:
    """Send the call with exactly this JSON text as its amount."""
    body = f'{{"amount": {amount}, "merchantReference": "k-{operation}"}}'
    path = f"/order/{order['orderId']}/{operation}{query}"
    return await merchant.http.post(path, content=body, headers={**JSON, **LENIENT, **headers})


async def half_captured(merchant: Merchant) -> dict[str, Any]:
    order = await merchant.approved("2000.00")
    assert (await merchant.move(order, "capture", "1500.00", "first")).status_code == 200
    return order


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("amount", "cents"),
    [("12.649999999999999", "12.65"), ('"12.649999999999999"', "12.65"), ('"499.00"', "499.00")],
)
async def test_an_amount_with_float_noise_is_read_as_the_intended_cents(
    lenient: Merchant, operation: str, amount: str, cents: str
) -> None:
    order = await half_captured(lenient)
    dry = await send(lenient, order, operation, amount, "?dryRun=true")
    assert dry.json()["amount"] == float(cents)
    done = await send(lenient, order, operation, amount, **{"Idempotency-Key": "one"})
    assert (done.status_code, done.json()["amount"]) == (200, float(cents))
    again = await send(lenient, order, operation, amount, **{"Idempotency-Key": "one"})
    assert (again.content, again.headers["idempotency-replayed"]) == (done.content, "true")
    # A duplicate is recognized by its cents, whatever the notation of the amount is.
    repeated = await send(lenient, order, operation, f'"{cents}"')
    assert_refused(repeated, 422, "duplicate_reference")
    assert repeated.json()["original"]["sameRequest"] is True


@pytest.mark.parametrize("operation", ["capture", "refund"])
async def test_an_amount_in_grouped_text_is_accepted(lenient: Merchant, operation: str) -> None:
    order = await lenient.approved("2000.00")
    if operation == "refund":
        await lenient.move(order, "capture", "2000.00", "all")
    done = await send(lenient, order, operation, '"1,234.50"')
    assert (done.status_code, done.json()["amount"]) == (200, 1234.5)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "amount",
    [
        '"1,23.50"',
        '"1234,50"',
        '"1.234,50"',
        '"12,34"',
        '",123"',
        '" 1.00"',
        "1.005",
        "12.6500011",
        "-1",
        "1e-9",
    ],
)
async def test_any_looser_amount_moves_no_money(lenient: Merchant, operation: str, amount: str) -> None:
    order = {"orderId": (await lenient.create())["orderId"]}
    refused = await send(lenient, order, operation, amount)
    assert_refused(refused, 422, "invalid_amount")
    assert "acceptedByProfile" not in refused.json()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("amount", ["12.649999999999999", '"1,234.50"'])
async def test_a_refusal_of_the_strict_profile_says_if_the_lenient_one_would_accept_the_amount(
    merchant: Merchant, operation: str, amount: str
) -> None:
    order = await merchant.create()
    refused = await send(merchant, order, operation, amount)
    assert_refused(refused, 422, "invalid_amount")
    assert refused.json()["acceptedByProfile"] == "lenient"
    assert "lenient profile" in refused.json()["detail"]
    assert "/docs/plugins" in refused.json()["detail"]
    assert refused.json()["balances"]["orderAmount"] == 100
    looser = await send(merchant, order, operation, '"1.234,50"')
    assert "acceptedByProfile" not in looser.json()


@pytest.mark.parametrize(
    ("path", "value", "code"),
    [
        ("amount", "1,234.50", "validation_failed"),
        ("taxAmount", -1, "validation_failed"),
        ("metadata", [], "malformed_request"),
        ("consumer.phoneNumber", "(212) 555-0100", "validation_failed"),
    ],
)
async def test_the_strict_refusal_of_an_order_says_if_the_lenient_profile_would_accept_it(
    merchant: Merchant, path: str, value: object, code: str
) -> None:
    refused = await merchant.http.post("/order", json=changed(path, value))
    assert_refused(refused, 400, code)
    assert refused.json()["acceptedByProfile"] == "lenient"
    # The error names the lenient profile only if that profile would accept the request.
    both = await merchant.http.post("/order", json={**changed(path, value), "merchantReference": None})
    assert "acceptedByProfile" not in both.json()


async def test_an_order_is_created_with_the_intended_cents(lenient: Merchant) -> None:
    body = {
        **FULL,
        "amount": 1234.5600000000001,
        "merchantFeeForPaymentPlan": 2.4999999999999996,
        "metadata": [],
    }
    created = (await lenient.http.post("/order", json=body, headers=LENIENT)).json()
    record = await lenient.read(created)
    assert (record["amount"], record["merchantFeeForPaymentPlan"], record["metadata"]) == (1234.56, 2.5, {})
    assert created["warnings"] == []
    grouped = await lenient.http.post("/order", json={**FULL, "amount": "1,234.50"}, headers=LENIENT)
    assert (await lenient.read(grouped.json()))["amount"] == 1234.5


@pytest.mark.parametrize(
    ("sides", "dropped"),
    [
        ({"taxAmount": -0.01}, ["taxAmount"]),
        ({"shippingAmount": ""}, ["shippingAmount"]),
        ({"taxAmount": "1.005"}, ["taxAmount"]),
        ({"taxAmount": [], "shippingAmount": True}, ["taxAmount", "shippingAmount"]),
        ({"taxAmount": 60, "shippingAmount": "59.97"}, ["taxAmount", "shippingAmount"]),
        ({"taxAmount": 119.97, "shippingAmount": None}, ["taxAmount"]),
    ],
)
async def test_impossible_tax_and_shipping_are_dropped_with_a_warning(
    lenient: Merchant, sides: dict[str, object], dropped: list[str]
) -> None:
    answer = await lenient.http.post("/order", json={**FULL, **sides}, headers=LENIENT)
    assert answer.status_code == 200, answer.text
    assert [warning["field"] for warning in answer.json()["warnings"]] == dropped
    record = await lenient.read(answer.json())
    assert all(record[name] is None for name in dropped)


async def test_a_huge_exponent_is_refused_without_an_error_of_the_service(lenient: Merchant) -> None:
    for literal in ("1e9999999", "-1e9999999", "1e-9999999"):
        body = json.dumps({**FULL, "taxAmount": "@", "amount": 120}).replace('"@"', literal)
        answer = await lenient.http.post("/order", content=body, headers={**JSON, **LENIENT})
        assert answer.status_code == 200, answer.text
