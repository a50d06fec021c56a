"""`POST /checkouts`: every field's rule, with the field names of shop systems."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cuota.core.merchant import BodyProfile
from support.api.bodies import assert_refused, failures
from support.api.smi_bodies import PLACE, changed, smi_body
from support.makers import Merchant, Running, make_merchant


async def start(merchant: Merchant, body: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
    answer = await merchant.http.post("/checkouts", json=body or smi_body(), headers=headers)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.fixture
async def lenient(service: Running) -> AsyncIterator[Merchant]:
    async with make_merchant(service, profile=BodyProfile.LENIENT) as made:
        yield made


GOOD: list[tuple[str, object]] = [
    ("shopper", None), ("shopper", {}), ("shopper.phone", None), ("shopper.billing_address", None),
    ("shopper.billing_address.country", "us"), ("shopper.billing_address.line2", ""), ("order.items", None),
    ("order.items", []), ("order.items[0]", {}), ("order.shipping", None), ("order.shipping", 5), ("order.shipping", "119.96"),
    ("order.shipping", {}), ("order.shipping.address", None), ("order.shipping.amount", "0.00"), ("order.reference", 1042),
    ("order.reference", ""), ("order.amount", 112.0), ("order.amount", "112.0000"),
]  # fmt: skip
BAD: list[tuple[str, object, str]] = [
    ("order.amount", None, "required"), ("order.amount", 0, "out_of_range"), ("order.amount", "1.005", "invalid"),
    ("order.currency", None, "required"), ("order.currency", "EUR", "invalid"), ("order.currency", "usd", "invalid"), ("order.reference", None, "required"),
    ("order.reference", "r" * 101, "too_long"), ("order.shipping", "1.005", "invalid"), ("order.shipping", -1, "out_of_range"),
    ("order.shipping", "119.97", "out_of_range"), ("order.shipping.amount", "119.97", "out_of_range"),
    ("order.shipping.address.state", "NYC", "too_long"), ("order.shipping.address.line1", None, "required"),
    ("order.items[0].price", "$1", "invalid"), ("order.items[0].sku", "s" * 101, "too_long"),
    ("shopper.first_name", "J", "too_short"), ("shopper.last_name", "R2", "invalid"), ("shopper.email", "a@b", "invalid"),
    ("shopper.phone", "+12125550100", "invalid"), ("shopper.billing_address.postal_code", "1000", "too_short"),
    ("shopper.billing_address.country", "CA", "invalid"), ("config.redirect_uri", None, "required"),
    ("config.redirect_uri", "shop", "invalid"), ("config.redirect_uri", "https://a@b.example/", "invalid"),
]  # fmt: skip
WRONG_TYPE: list[tuple[str, object]] = [
    ("shopper", "x"), ("shopper", []), ("shopper.phone", 2125550100), ("shopper.billing_address", "x"), ("order.amount", True),
    ("order.currency", 7), ("order.reference", True), ("order.items", {}), ("order.items[0]", "x"),
    ("order.items[0].quantity", "2"), ("order.shipping", [5]), ("order.shipping", True), ("order.shipping.amount", {}),
    ("order.shipping.address", []), ("config.redirect_uri", 7), ("shopper.billing_address.country", 1),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), GOOD)
async def test_a_valid_field_is_accepted(merchant: Merchant, path: str, value: object) -> None:
    await start(merchant, changed(path, value))


@pytest.mark.parametrize(("path", "value", "code"), BAD)
async def test_a_broken_field_is_refused_and_the_error_names_it(
    merchant: Merchant, path: str, value: object, code: str
) -> None:
    answer = await merchant.http.post("/checkouts", json=changed(path, value))
    assert_refused(answer, 400, "validation_failed")
    assert failures(answer) == [(path, code)]


@pytest.mark.parametrize(("path", "value"), WRONG_TYPE)
async def test_a_wrong_json_type_is_a_malformed_request(merchant: Merchant, path: str, value: object) -> None:
    answer = await merchant.http.post("/checkouts", json=changed(path, value))
    assert_refused(answer, 400, "malformed_request")
    assert failures(answer) == [(path, "wrong_type")]


async def test_all_errors_are_reported_together_and_nothing_is_created(merchant: Merchant) -> None:
    answer = await merchant.http.post("/checkouts", json={"shopper": {"email": "x"}, "order": {"amount": 0}})
    assert set(failures(answer)) == {
        ("shopper.email", "invalid"), ("order.amount", "out_of_range"), ("order.currency", "required"),
        ("order.reference", "required"), ("config", "required"), ("config.redirect_uri", "required"),
    }  # fmt: skip
    sql = "SELECT count(*) AS n FROM orders WHERE merchant_id = $1"
    row = await merchant.service.context.pool.fetchrow(sql, merchant.merchant_id)
    assert row is not None
    assert row["n"] == 0


async def test_the_error_about_an_amount_out_of_range_uses_the_sent_field_name(merchant: Merchant) -> None:
    answer = await merchant.http.post("/checkouts", json=smi_body("2000.01"))
    assert_refused(answer, 400, "amount_out_of_range")
    assert failures(answer) == [("order.amount", "out_of_range")]


async def test_the_lenient_profile_corrects_or_drops_prefill(lenient: Merchant) -> None:
    body = changed("shopper.phone", "+1 (212) 555-0100")
    place = {**PLACE, "state": "US-NY", "postal_code": "10001-1234"}
    body["shopper"] |= {"billing_address": place, "email": "nobody", "first_name": " "}
    body["order"] |= {
        "shipping": {"amount": "1,000.00", "address": dict.fromkeys(PLACE, "")},
        "amount": "1119.96",
    }
    checkout = (await lenient.http.post("/checkouts", json=body, headers={"x-lenient": "1"})).json()
    record = (await lenient.http.get(f"/order/{checkout['id']}")).json()
    assert record["consumer"]["phoneNumber"] == "2125550100"
    assert (record["billing"]["state"], record["billing"]["postcode"]) == ("NY", "10001")
    assert (record["shippingAmount"], record["shipping"]) == (1000, None)
    assert [warning["field"] for warning in record["warnings"]] == ["shopper.email"]
