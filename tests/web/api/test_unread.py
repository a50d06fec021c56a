"""Unknown parts of a request are ignored and reported if that is harmless, and refused if ignoring them would move
money."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.web.api.order_body import SHAPE
from cuota.web.api.unknown import MOST_NAMED, unknown_fields
from support.api.bodies import FULL, assert_refused, failures
from support.api.smi_bodies import smi_body
from support.makers import Merchant, order_body
from support.properties.steady import STEADY

OPERATIONS = ["capture", "void", "refund"]


def named(warnings: list[dict[str, str]]) -> dict[str, str]:
    assert {warning["code"] for warning in warnings} <= {"unknown_field"}
    return {warning["field"]: warning["message"] for warning in warnings}


async def test_a_warning_names_an_unknown_field_at_every_level_of_an_order(merchant: Merchant) -> None:
    body = json.loads(json.dumps(FULL))
    body.update({"taxamount": "1.00", "orderStatus": "Approved", "gone": None})
    body["consumer"]["givenName"] = "J"
    body["merchant"]["redirectConfirmURL"] = "https://shop.example/"
    body["items"][1]["unitPrice"] = "9.99"
    created = (await merchant.http.post("/order", json=body)).json()
    found = named(created["warnings"])
    assert set(found) == {
        "taxamount", "orderStatus", "consumer.givenName", "merchant.redirectConfirmURL", "items[1].unitPrice",
    }  # fmt: skip
    assert found["taxamount"].endswith("Did you mean taxAmount?")
    assert found["consumer.givenName"].endswith("Did you mean givenNames?")
    assert "Did you mean" not in found["orderStatus"]
    record = await merchant.read(created)
    assert record["warnings"] == created["warnings"]
    assert record["taxAmount"] == 8.88


async def test_the_keys_inside_metadata_are_free(merchant: Merchant) -> None:
    assert (await merchant.create(metadata={"taxamount": "1", "x": "y"}))["warnings"] == []


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_the_answer_to_a_movement_names_an_unknown_field_and_is_stored_with_it(
    merchant: Merchant, operation: str
) -> None:
    order = await merchant.approved("100.00")
    await merchant.move(order, "capture", "50.00", "c")
    body = {"amount": "1.00", "merchantReference": "m", "amout": "2.00", "note": {"x": 1}}
    path, key = f"/order/{order['orderId']}/{operation}", {"Idempotency-Key": f"k-{operation}"}
    dry = (await merchant.http.post(f"{path}?dryRun=true", json=body)).json()
    done = await merchant.http.post(path, json=body, headers=key)
    assert set(named(done.json()["warnings"])) == set(named(dry["warnings"])) == {"amout", "note"}
    assert (await merchant.http.post(path, json=body, headers=key)).content == done.content
    plain = await merchant.move(order, operation, "1.00")
    assert "warnings" not in plain.json()
    record = await merchant.read(order)
    assert not [
        item for name in ("captures", "voids", "refunds") for item in record[name] if "warnings" in item
    ]


async def test_checkouts_of_shop_systems_name_unknown_fields_too(merchant: Merchant) -> None:
    body = smi_body()
    body["order"]["curency"] = "USD"
    body["shopper"] = {"firstname": "J"}
    found = named((await merchant.http.post("/checkouts", json=body)).json()["warnings"])
    assert set(found) == {"order.curency", "shopper.firstname"}


@STEADY
@given(st.dictionaries(st.text(min_size=1, max_size=60), st.integers(10**9, 10**10), max_size=80))
def test_warnings_have_a_limited_number_and_repeat_no_value_and_no_digits_in_a_name(
    extra: dict[str, Any],
) -> None:
    body = {
        **extra,
        "items": [extra] * 50,
        "consumer": extra,
        "card": "4242424242424242",
        "4242424242424242": 1,
    }
    warnings = unknown_fields(body, SHAPE)
    assert 1 <= len(warnings) <= MOST_NAMED + 1
    text = json.dumps(warnings)
    assert len(text) < 6000
    assert "4242424242" not in text
    assert not [value for value in extra.values() if str(value) in text]


@pytest.mark.parametrize("sent", ["EUR", "usd", "", " USD", "US"])
async def test_an_order_in_another_currency_is_refused(merchant: Merchant, sent: str) -> None:
    answer = await merchant.http.post("/order", json=order_body(currency=sent))
    assert_refused(answer, 400, "validation_failed")
    assert failures(answer) == [("currency", "invalid")]
    smi = smi_body()
    smi["order"]["currency"] = sent
    assert failures(await merchant.http.post("/checkouts", json=smi)) == [("order.currency", "invalid")]


async def test_the_merchant_s_own_currency_is_accepted_and_may_be_omitted(merchant: Merchant) -> None:
    for currency in ("USD", None):
        assert (await merchant.create(currency=currency))["warnings"] == []
    answer = await merchant.http.post("/order", json=order_body(currency=840))
    assert_refused(answer, 400, "malformed_request")


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_movement_in_another_currency_moves_nothing(merchant: Merchant, operation: str) -> None:
    order = await merchant.approved("100.00")
    await merchant.move(order, "capture", "50.00", "c")
    before = await merchant.read(order)
    body = {"amount": "1.00", "merchantReference": "m", "currency": "EUR"}
    path = f"/order/{order['orderId']}/{operation}"
    assert_refused(await merchant.http.post(path, json=body), 400, "validation_failed")
    assert await merchant.read(order) == before
    done = await merchant.http.post(path, json={**body, "currency": "USD"})
    assert set(done.json()) & {"warnings"} == set()
    assert done.status_code == 200


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("dryrun=true", "dryrun"),
        ("dry_run=true", "dry_run"),
        ("DryRun=true", "DryRun"),
        ("dryRun=true&dryRun=false", "dryRun"),
        ("dryRun=true&dryRun=true", "dryRun"),
        ("dryRun=true&force=1", "force"),
        ("=true", "?"),
        ("dryRun+=true", "?"),
        ("4242424242424242=true", "?"),
    ],
)
async def test_a_call_with_an_unknown_query_parameter_moves_nothing(
    merchant: Merchant, operation: str, query: str, field: str
) -> None:
    order = await merchant.create()
    body = {"amount": "1.00", "merchantReference": "m"}
    answer = await merchant.http.post(f"/order/{order['orderId']}/{operation}?{query}", json=body)
    assert_refused(answer, 400, "malformed_request")
    assert [name for name, _ in failures(answer)] == [field]
    assert "Nothing was done." in answer.json()["detail"]
    assert "4242" not in answer.text.replace(query, "") or field != "?"
    if field.lower().replace("_", "") == "dryrun" and field != "dryRun":
        assert "did you mean dryRun?" in answer.json()["detail"]


async def test_a_dry_run_without_a_value_is_refused_and_captures_nothing(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    body = {"amount": "1.00", "merchantReference": "m"}
    for query in ("dryRun", "dryRun="):
        answer = await merchant.http.post(f"/order/{order['orderId']}/capture?{query}", json=body)
        assert_refused(answer, 400, "validation_failed")
    assert (await merchant.read(order))["capturedAmount"] == 0


async def test_a_query_of_post_order_is_ignored_and_named(merchant: Merchant) -> None:
    answer = await merchant.http.post("/order?dryRun=true&utm=1", json=order_body())
    assert [(w["field"], w["code"]) for w in answer.json()["warnings"]] == [
        ("dryRun", "unknown_parameter"), ("utm", "unknown_parameter"),
    ]  # fmt: skip
