"""Signed requests and requests of shop systems have the same profiles, currency rule and warnings about unknown
fields."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from cuota.core.merchant import BodyProfile
from cuota.core.merchant import Merchant as Terms
from cuota.core.refusal import Code, Refused
from cuota.core.wire.strict_json import read_json
from cuota.flows.context import new_token
from cuota.flows.order.create_order import OrderRequest
from cuota.web.api.sdk_body import read_sdk_body
from cuota.web.api.smi_body import read_smi_body
from support.api.smi_bodies import smi_body

ENTRIES = ["sdk", "smi"]


def read(entry: str, body: dict[str, Any], profile: BodyProfile) -> OrderRequest:
    terms = Terms(new_token(), "Shop", 100, 200_000, True, profile, "USD", ())
    given = read_json(json.dumps(body).encode())
    if entry == "smi":
        return read_smi_body(given, terms, date(2026, 11, 21), https_only=False).order
    return read_sdk_body(given, terms, https_only=False, gateway=False).order


def body_of(entry: str, **order: Any) -> dict[str, Any]:
    if entry == "smi":
        return smi_body(**order)
    base = {"amount": "100.00", "currency": "USD", **order}
    return {"merchantReference": "B-7", "order": base, "callbackUrl": "https://shop.example/hook"}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(("amount", "cents"), [("1,234.50", 123450), (12.649999999999999, 1265)])
def test_the_lenient_profile_reads_the_amount_and_the_strict_profile_says_that_the_lenient_one_would(
    entry: str, amount: object, cents: int
) -> None:
    body = body_of(entry, amount=amount)
    assert read(entry, body, BodyProfile.LENIENT).amount == cents
    with pytest.raises(Refused) as refused:
        read(entry, body, BodyProfile.STRICT)
    assert [error.field for error in refused.value.errors] == ["order.amount"]
    assert refused.value.facts == {"acceptedByProfile": "lenient"}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("amount", ["1,23.50", "1234,50", "1.234,50", ",123", "12.655", " 12.65"])
def test_any_looser_text_is_no_amount(entry: str, amount: str) -> None:
    for profile in BodyProfile:
        with pytest.raises(Refused) as refused:
            read(entry, body_of(entry, amount=amount), profile)
        assert refused.value.facts == {}


@pytest.mark.parametrize(
    ("entry", "sides", "fields"),
    [
        ("sdk", {"taxAmount": -1, "shippingAmount": ""}, ["order.taxAmount", "order.shippingAmount"]),
        ("sdk", {"taxAmount": 60, "shippingAmount": 60}, ["order.taxAmount", "order.shippingAmount"]),
        ("smi", {"shipping": -1}, ["order.shipping"]),
        ("smi", {"shipping": {"amount": "100.01"}}, ["order.shipping.amount"]),
        ("smi", {"shipping": [1]}, ["order.shipping"]),
    ],
)
def test_impossible_tax_and_shipping_amounts_are_dropped_with_a_warning(
    entry: str, sides: dict[str, Any], fields: list[str]
) -> None:
    asked = read(entry, body_of(entry, **sides), BodyProfile.LENIENT)
    assert [warning["field"] for warning in asked.warnings] == fields
    assert asked.document["taxAmount"] is asked.document["shippingAmount"] is None


def test_an_empty_list_as_metadata_is_read_as_an_empty_object() -> None:
    body = {**body_of("sdk"), "metadata": []}
    assert read("sdk", body, BodyProfile.LENIENT).document["metadata"] == {}
    with pytest.raises(Refused) as refused:
        read("sdk", body, BodyProfile.STRICT)
    assert refused.value.code is Code.MALFORMED_REQUEST


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("profile", list(BodyProfile))
@pytest.mark.parametrize("currency", ["EUR", "usd", "", None])
def test_no_profile_relaxes_the_rule_about_the_currency(
    entry: str, profile: BodyProfile, currency: str | None
) -> None:
    with pytest.raises(Refused) as refused:
        read(entry, body_of(entry, currency=currency), profile)
    assert refused.value.code is Code.VALIDATION_FAILED
    assert [error.field for error in refused.value.errors] == ["order.currency"]
    assert refused.value.facts == {}


@pytest.mark.parametrize("profile", list(BodyProfile))
def test_unknown_fields_of_a_signed_request_are_named_in_warnings_at_every_level(
    profile: BodyProfile,
) -> None:
    body = body_of("sdk", taxamount=1, customer={"firstname": "J"}, lineItems=[{"sku": "1", "unit_price": 2}])
    body |= {"callbackURL": "https://x.example", "additionalData": {"anything": 1}, "metadata": {"free": "x"}}
    warnings = read("sdk", body, profile).warnings
    assert {warning["field"] for warning in warnings} == {
        "callbackURL", "order.taxamount", "order.customer.firstname", "order.lineItems[0].unit_price",
    }  # fmt: skip
