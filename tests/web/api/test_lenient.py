"""The lenient profile corrects or drops a shopper's wrong input, so that no sale is lost."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from cuota.core.merchant import BodyProfile
from support.api.bodies import ADDRESS, FULL, assert_refused, changed, failures
from support.makers import Merchant, Running, make_merchant

LENIENT = {"x-lenient": "1"}


@pytest.fixture
async def lenient(service: Running) -> AsyncIterator[Merchant]:
    """A merchant with the lenient profile."""
    async with make_merchant(service, profile=BodyProfile.LENIENT) as made:
        yield made


async def send(merchant: Merchant, body: dict[str, Any]) -> httpx.Response:
    return await merchant.http.post("/order", json=body, headers=LENIENT)


async def taken(merchant: Merchant, body: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the record of an accepted order, and its warnings as (field, code)."""
    answer = await send(merchant, body)
    assert answer.status_code == 200, answer.text
    record = await merchant.read(answer.json())
    assert record["warnings"] == answer.json()["warnings"]
    assert all(warning["message"] for warning in record["warnings"])
    return record, [(warning["field"], warning["code"]) for warning in record["warnings"]]


def at(record: dict[str, Any], path: str) -> Any:
    """Return the value at a dotted path."""
    value: Any = record
    for name in path.replace("[0]", ".0").split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


NORMALISED: list[tuple[str, object, object]] = [
    *[("consumer.phoneNumber", typed, "2125550100") for typed in (
        "+1 212 555 0100", "+12125550100", "1-212-555-0100", "(212) 555-0100", "212.555.0100", " 2125550100 ", "[212] 555-0100",
    )],
    *[(f"{name}.postcode", typed, "94103") for name in ("billing", "shipping") for typed in ("94103-1234", "941031234", " 94103 ")],
    *[(f"{name}.state", typed, "FL") for name in ("billing", "shipping") for typed in ("US-FL", "us-fl", "Florida", "FLORIDA", "fl")],
    ("billing.state", "New York", "NY"),
    ("billing.state", "District of Columbia", "DC"),
    ("taxAmount", "8.879999999999999", 8.88),
    ("taxAmount", 31.889999999999997, 31.89),
    ("shippingAmount", 0.30000000000000004, 0.3),
    ("items[0].price", "1,234.50", 1234.5),
    ("items[0].price", "12,345,678.90", 12345678.9),
    ("items[0].price", 31.889999999999997, 31.89),
    ("consumer.email", "", None),
    ("consumer.givenNames", " ", None),
    *[(f"consumer.{field}", name, name) for field in ("givenNames", "surname") for name in (
        "O'Brien", "O\u2019Neill", "St. John", "King Jr.", "J", "e\u0301" * 50, "Zoë-Márie", "नमस्ते",
    )],
    ("consumer.phoneNumber", "", None),
    ("billing", dict.fromkeys(ADDRESS, ""), None),
    ("shipping", dict.fromkeys(ADDRESS), None),
    ("shipping", {}, None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "typed", "kept"), NORMALISED, ids=lambda value: repr(value)[:24])
async def test_a_shopper_s_typing_errors_are_corrected_without_a_warning(
    lenient: Merchant, path: str, typed: object, kept: object
) -> None:
    record, warnings = await taken(lenient, changed(path, typed))
    assert at(record, path) == kept
    assert warnings == []


async def test_a_grouped_tax_or_shipping_amount_is_accepted(lenient: Merchant) -> None:
    body = {**copy.deepcopy(FULL), "amount": "1500.00", "taxAmount": "1,234.50", "shippingAmount": " 12.00 "}
    record, warnings = await taken(lenient, body)
    assert (record["taxAmount"], record["shippingAmount"]) == (1234.5, 12)
    assert warnings == []


DROPPED: list[tuple[str, object, str]] = [
    ("consumer.phoneNumber", "1234567890", "invalid"),
    ("consumer.phoneNumber", 2125550100, "wrong_type"),
    ("consumer.phoneNumber", "\u0662\u0661\u0662\u0665\u0665\u0665\u0660\u0661\u0660\u0660", "invalid"),
    ("consumer.givenNames", "R2-D2", "invalid"),
    ("consumer.surname", "x" * 51, "too_long"),
    ("consumer.surname", "e\u0301" * 51, "too_long"),
    ("consumer.email", "not an address", "invalid"),
    ("consumer", "Jordan", "wrong_type"),
    *[(f"{name}.addressLine1", "ab", "too_short") for name in ("billing", "shipping")],
    ("billing.addressLine2", "x" * 51, "too_long"),
    ("billing.city", None, "required"),
    ("billing.state", "Ontario", "too_long"),
    ("billing.postcode", "K1A 0B1", "too_long"),
    ("shipping.postcode", "123", "too_short"),
    ("billing", "1 Main Street", "wrong_type"),
    ("items", "shoes", "wrong_type"),
    ("items", [{}] * 1001, "too_long"),
    ("items[0].name", "n" * 1001, "too_long"),
    ("items[0].sku", "s" * 101, "too_long"),
    ("items[0].price", "$5", "invalid"),
    ("items[0].quantity", "two", "wrong_type"),
    ("items[0].description", 7, "wrong_type"),
    ("taxAmount", "eight", "invalid"),
    ("taxAmount", "1.005", "invalid"),
    ("shippingAmount", "-1.00", "out_of_range"),
]


@pytest.mark.parametrize(("path", "typed", "code"), DROPPED, ids=lambda value: repr(value)[:24])
async def test_prefill_that_breaks_a_rule_is_dropped_with_a_warning(
    lenient: Merchant, path: str, typed: object, code: str
) -> None:
    record, warnings = await taken(lenient, changed(path, typed))
    assert warnings == [(path, code)]
    assert at(record, path) is None
    strict = changed(path, typed)
    assert record["amount"] == float(strict["amount"])
    # The other fields of the object are kept.
    if path.startswith("consumer."):
        others = {name for name in FULL["consumer"] if f"consumer.{name}" != path}
        assert all(record["consumer"][name] == FULL["consumer"][name] for name in others)


async def test_an_item_that_is_no_object_is_dropped_with_a_warning(lenient: Merchant) -> None:
    record, warnings = await taken(lenient, changed("items", ["shoe", {"name": "Lace"}]))
    assert warnings == [("items[0]", "wrong_type")]
    assert [item["name"] for item in record["items"]] == ["Lace"]


async def test_all_dropped_fields_are_named_together(lenient: Merchant) -> None:
    body = changed("consumer", {"phoneNumber": "1", "email": "x"})
    body["billing"] = {"city": "San Francisco"}
    _, warnings = await taken(lenient, body)
    assert {field for field, _ in warnings} == {
        "consumer.phoneNumber", "consumer.email", "billing.addressLine1", "billing.state", "billing.postcode",
    }  # fmt: skip


async def test_an_order_with_a_dropped_field_can_be_paid(lenient: Merchant) -> None:
    from support.makers import complete

    body = changed("billing", {"city": "ab"})
    body["consumer"] = {"phoneNumber": "1"}
    created = (await send(lenient, body)).json()
    await complete(lenient.service, lenient.merchant_id, created)
    assert (await lenient.read(created))["orderStatus"] == "Approved"


NEVER_RELAXED: list[tuple[str, object, str]] = [
    ("amount", "1.234,50", "invalid"),
    ("amount", "12.6500011", "invalid"),
    ("amount", " 100.00", "invalid"),
    ("amount", "", "invalid"),
    ("amount", 0, "out_of_range"),
    ("amount", None, "required"),
    ("merchant", None, "required"),
    ("merchant.redirectConfirmUrl", " https://shop.example/", "invalid"),
    ("merchant.redirectConfirmUrl", "shop.example", "invalid"),
    ("merchant.redirectCancelUrl", None, "required"),
    ("merchant.statusCallbackUrl", "shop.example", "invalid"),
    ("merchantReference", "r" * 101, "too_long"),
    ("merchantReference", None, "required"),
    ("merchantReference", "a\nb", "control_character"),
    ("metadata", {"k": "v" * 501}, "too_long"),
    ("merchantFeeForPaymentPlan", "1,00.00", "invalid"),
    ("merchantFeeForPaymentPlan", "1,000.00", "out_of_range"),
]


@pytest.mark.parametrize(("path", "typed", "code"), NEVER_RELAXED, ids=lambda value: repr(value)[:24])
async def test_rules_about_money_and_the_merchant_are_never_relaxed(
    lenient: Merchant, path: str, typed: object, code: str
) -> None:
    answer = await send(lenient, changed(path, typed))
    assert_refused(answer, 400, "validation_failed")
    assert failures(answer) == [(path, code)]


@pytest.mark.parametrize(
    ("path", "typed"),
    [("consumer.phoneNumber", "+12125550100"), ("billing.state", "Florida"), ("billing.postcode", "94103-1234"), ("taxAmount", 8.879999999999999)],
)  # fmt: skip
async def test_the_strict_profile_corrects_nothing(merchant: Merchant, path: str, typed: object) -> None:
    answer = await merchant.http.post("/order", json=changed(path, typed))
    assert_refused(answer, 400, "validation_failed")
    assert [field for field, _ in failures(answer)] == [path]
