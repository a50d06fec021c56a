"""The lenient profile on captures, voids and refunds: a shop that ships is paid, whatever its floats did to the amount."""

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
    """The call with its amount as this very JSON text."""
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
async def test_float_noise_is_the_cent_that_it_misses(
    lenient: Merchant, operation: str, amount: str, cents: str
) -> None:
    order = await half_captured(lenient)
    dry = await send(lenient, order, operation, amount, "?dryRun=true")
    assert dry.json()["amount"] == float(cents)
    done = await send(lenient, order, operation, amount, **{"Idempotency-Key": "one"})
    assert (done.status_code, done.json()["amount"]) == (200, float(cents))
    again = await send(lenient, order, operation, amount, **{"Idempotency-Key": "one"})
    assert (again.content, again.headers["idempotency-replayed"]) == (done.content, "true")
    # A duplicate is judged by the cent that was read, in whatever form it comes.
    repeated = await send(lenient, order, operation, f'"{cents}"')
    assert_refused(repeated, 422, "duplicate_reference")
    assert repeated.json()["original"]["sameRequest"] is True


@pytest.mark.parametrize("operation", ["capture", "refund"])
async def test_grouped_text_is_read(lenient: Merchant, operation: str) -> None:
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
async def test_nothing_looser_moves_money(lenient: Merchant, operation: str, amount: str) -> None:
    order = {"orderId": (await lenient.create())["orderId"]}
    refused = await send(lenient, order, operation, amount)
    assert_refused(refused, 422, "invalid_amount")
    assert "acceptedByProfile" not in refused.json()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("amount", ["12.649999999999999", '"1,234.50"'])
async def test_a_strict_refusal_that_lenient_would_have_read_says_so(
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
async def test_so_does_a_strict_refusal_of_an_order(
    merchant: Merchant, path: str, value: object, code: str
) -> None:
    refused = await merchant.http.post("/order", json=changed(path, value))
    assert_refused(refused, 400, code)
    assert refused.json()["acceptedByProfile"] == "lenient"
    # The error names the lenient profile only if that profile would accept the request.
    both = await merchant.http.post("/order", json={**changed(path, value), "merchantReference": None})
    assert "acceptedByProfile" not in both.json()


async def test_an_order_is_created_with_the_cents_that_were_meant(lenient: Merchant) -> None:
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
async def test_tax_and_shipping_that_cannot_be_are_dropped_and_named(
    lenient: Merchant, sides: dict[str, object], dropped: list[str]
) -> None:
    answer = await lenient.http.post("/order", json={**FULL, **sides}, headers=LENIENT)
    assert answer.status_code == 200, answer.text
    assert [warning["field"] for warning in answer.json()["warnings"]] == dropped
    record = await lenient.read(answer.json())
    assert all(record[name] is None for name in dropped)


async def test_an_exponent_beyond_any_amount_is_refused_and_breaks_nothing(lenient: Merchant) -> None:
    for literal in ("1e9999999", "-1e9999999", "1e-9999999"):
        body = json.dumps({**FULL, "taxAmount": "@", "amount": 120}).replace('"@"', literal)
        answer = await lenient.http.post("/order", content=body, headers={**JSON, **LENIENT})
        assert answer.status_code == 200, answer.text
