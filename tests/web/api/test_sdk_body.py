"""The signed request's fields in both layouts: their rules, and reporting all errors at once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cuota.core.merchant import BodyProfile
from cuota.core.merchant import Merchant as Terms
from cuota.core.refusal import Refused
from cuota.core.wire.strict_json import read_json
from cuota.flows.context import new_token
from cuota.web.api.sdk_body import SdkRequest, read_sdk_body

TERMS = Terms(new_token(), "Shop", 100, 200_000, True, BodyProfile.STRICT, "USD", ())
LENIENT = Terms(new_token(), "Shop", 100, 200_000, True, BodyProfile.LENIENT, "USD", ())
NESTED = {
    "customer": {
        "firstName": "José", "lastName": "O'Brien", "email": "jose@example.com", "phoneNumber": "+1 (212) 555-0100",
        "address1": "1 Old Road", "city": "Reno", "state": "NV", "postalCode": "89501", "country": "US",
    },
    "address": {"line1": "12 Main Street", "line2": "Apt 4", "city": "New York", "state": "US-NY", "postalCode": "10001",
                "country": "us"},
}  # fmt: skip
FLAT = {
    "merchantReference": "B-7", "email": "jose@example.com", "firstName": "José", "lastName": "O'Brien",
    "phoneNumber": "2125550100",
    "billingAddress": {"line1": "12 Main Street", "address2": "Apt 4", "city": "New York", "state": "NY",
                       "postalCode": "10001", "country": "US"},
}  # fmt: skip


def body(order: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    base = {"amount": "100.00", "currency": "USD", **(order or {})}
    return {"merchantReference": "B-7", "order": base, "callbackUrl": "https://shop.example/hook", **more}


def read(
    given: dict[str, Any], terms: Terms = TERMS, *, gateway: bool = False, https: bool = False
) -> SdkRequest:
    text = json.dumps(given)
    return read_sdk_body(read_json(text.encode()), terms, https_only=https, gateway=gateway)


def failures(given: dict[str, Any], **more: Any) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        read(given, **more)
    return {error.field: error.code for error in caught.value.errors}


@pytest.mark.parametrize(
    "order", [NESTED, FLAT, {**FLAT, **NESTED, "phoneNumber": None}], ids=["nested", "flat", "both"]
)
def test_both_layouts_are_read_as_the_same_request(order: dict[str, Any]) -> None:
    document = read(body(order)).order.document
    assert document["consumer"] == {
        "phoneNumber": "2125550100", "givenNames": "José", "surname": "O'Brien", "email": "jose@example.com",
    }  # fmt: skip
    assert document["billing"] == {
        "addressLine1": "12 Main Street", "addressLine2": "Apt 4", "city": "New York", "state": "NY", "postcode": "10001",
    }  # fmt: skip


def test_without_an_address_in_the_order_even_a_partial_address_of_the_customer_is_used() -> None:
    document = read(body({"customer": {"state": "NV", "postalCode": "89501"}})).order.document
    assert document["billing"] == {
        "addressLine1": None, "addressLine2": None, "city": None, "state": "NV", "postcode": "89501",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("order", "field"),
    [
        ({"customer": {"email": "a@b.example"}, "email": "c@d.example"}, "order.email"),
        ({"customer": {"phoneNumber": "2125550100"}, "phoneNumber": "2125550101"}, "order.phoneNumber"),
        ({**NESTED, "billingAddress": {"city": "Boston"}}, "order.billingAddress.city"),
        ({"merchantReference": "other"}, "order.merchantReference"),
    ],
)
def test_different_values_in_the_two_layouts_are_an_error_in_every_profile(
    order: dict[str, Any], field: str
) -> None:
    assert failures(body(order)) == {field: "conflict"}


def test_the_same_values_in_both_layouts_are_no_error() -> None:
    assert read(
        body({"customer": {"email": "a@b.example"}, "email": "a@b.example", "merchantReference": "B-7"})
    )


@pytest.mark.parametrize(
    ("given", "field", "code"),
    [
        (body({"amount": 0}), "order.amount", "out_of_range"),
        (body({"amount": "1.005"}), "order.amount", "invalid"),
        (body({"amount": None}), "order.amount", "required"),
        (body({"amount": True}), "order.amount", "wrong_type"),
        (body({"currency": "EUR"}), "order.currency", "invalid"),
        (body({"currency": None}), "order.currency", "required"),
        (body({"taxAmount": "100.01"}), "order.taxAmount", "out_of_range"),
        (body({"address": {"line1": "x"}}), "order.address.city", "required"),
        (body({"address": {**NESTED["address"], "country": "CA"}}), "order.address.country", "invalid"),
        (body({"address": {**NESTED["address"], "postalCode": "1000"}}), "order.address.postalCode", "invalid"),
        (body({"customer": {"state": "Florida"}}), "order.customer.state", "invalid"),
        (body({"customer": "Jo"}), "order.customer", "wrong_type"),
        (body({"lineItems": {}}), "order.lineItems", "wrong_type"),
        (body({"lineItems": [{"quantity": "2"}]}), "order.lineItems[0].quantity", "wrong_type"),
        (body({"lineItems": [{"releaseDate": "soon"}]}), "order.lineItems[0].releaseDate", "invalid"),
        (body({"lineItems": [{"isPreOrder": "yes"}]}), "order.lineItems[0].isPreOrder", "wrong_type"),
        (body(capture="true"), "capture", "wrong_type"),
        (body(checkoutFlow="fast"), "checkoutFlow", "invalid"),
        (body(display="tab"), "display", "invalid"),
        (body(integrationType="gateway"), "integrationType", "invalid"),
        (body(callbackUrl="javascript:alert(1)"), "callbackUrl", "invalid"),
        (body(callbackUrl=""), "callbackUrl", "required"),
        (body(callbackUrl=None), "callbackUrl", "required"),
        (body(merchantReference=None), "merchantReference", "required"),
        (body(merchantReference="x" * 101), "merchantReference", "too_long"),
        (body(redirectConfirmUrl="//shop.example"), "redirectConfirmUrl", "invalid"),
        (body(metadata={"a": 1}), "metadata", "wrong_type"),
        ({**body(), "order": None}, "order", "required"),
    ],
)  # fmt: skip
def test_the_error_about_a_broken_rule_names_the_field(given: dict[str, Any], field: str, code: str) -> None:
    assert failures(given).get(field) == code


def test_all_failures_are_reported_together() -> None:
    wrong = body({"amount": -1, "currency": "EUR", "customer": {"state": "XX"}}, checkoutFlow="x", capture=1)
    assert set(failures(wrong)) == {
        "order.amount", "order.currency", "order.customer.state", "checkoutFlow", "capture",
    }  # fmt: skip


def test_the_defaults_are_capture_popup_and_the_standard_flow() -> None:
    asked = read(body())
    assert (asked.capture, asked.start.display, asked.start.flow, asked.start.integration) == (
        True, "popup", "standard", "api",
    )  # fmt: skip


def test_without_capture_no_callback_address_is_required() -> None:
    assert read(body(capture=False, callbackUrl=None)).capture is False


def test_a_virtual_card_order_is_captured_by_its_card_even_if_the_request_asks_for_capture() -> None:
    asked = read(body(integrationType="virtual_card", capture=True, callbackUrl=None))
    assert asked.capture is False


def test_a_long_description_of_an_item_is_cut_and_the_rest_is_kept() -> None:
    item = {
        "description": "d" * 130,
        "quantity": 2,
        "price": "1.50",
        "isPreOrder": True,
        "releaseDate": "2027-01-31T10:00",
    }
    items = read(body({"lineItems": [item]})).order.document["items"]
    assert isinstance(items, list)
    assert len(items[0]["description"]) == 100
    assert (items[0]["isPreOrder"], items[0]["releaseDate"]) == (True, "2027-01-31")


def test_a_gateway_request_requires_the_browser_s_return_address() -> None:
    assert failures(body(), gateway=True) == {
        "redirectConfirmUrl": "required",
        "redirectCancelUrl": "required",
    }


def test_production_accepts_only_https_addresses() -> None:
    assert failures(body(callbackUrl="http://shop.example/hook"), https=True)["callbackUrl"] == "invalid"


def test_the_lenient_profile_drops_unreadable_fields_with_a_warning() -> None:
    order = {
        "customer": {"state": "Florida", "postalCode": "33101-1234", "country": "Cuba"},
        "taxAmount": "1.000000001",
    }
    asked = read(body({**order, "shippingAmount": "0"}), LENIENT)
    assert asked.order.document["billing"] == {
        "addressLine1": None, "addressLine2": None, "city": None, "state": "FL", "postcode": "33101",
    }  # fmt: skip
    assert [warning["field"] for warning in asked.order.warnings] == ["order.customer.country"]


def test_amounts_are_read_exactly() -> None:
    asked = read_sdk_body(
        read_json(b'{"merchantReference":1,"capture":false,"order":{"amount":1234567.89,"currency":"USD","taxAmount":0.10}}'),
        TERMS, https_only=False, gateway=False,
    )  # fmt: skip
    assert asked.order.amount == 123_456_789
    assert asked.order.reference == "1"
