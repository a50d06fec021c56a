"""Inputs that break payment services, for `POST /order`: one test for each row B (bodies) and U (addresses) of
bad_inputs.csv."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.api.bad_inputs import ADDRESSES, BODY, FIELDS, MALFORMED_BODIES, UNUSABLE_AMOUNTS, inside
from support.api.bodies import JSON, assert_refused, changed, failures, post, with_literal
from support.makers import Merchant, order_body

MALFORMED, INVALID = "malformed_request", "validation_failed"


@pytest.mark.parametrize("row", MALFORMED_BODIES)
async def test_a_body_that_is_not_json_is_malformed(merchant: Merchant, row: str) -> None:
    for content in MALFORMED_BODIES[row]:
        assert_refused(await post(merchant, content), 400, MALFORMED)


async def test_nesting_of_32_is_accepted(merchant: Merchant) -> None:
    # The body itself is the first level.
    assert (await post(merchant, inside("[" * 31 + "]" * 31))).status_code == 200
    quoted = json.dumps("[" * 100 + '\\"{{')
    assert (await post(merchant, inside(quoted))).status_code == 200


@pytest.mark.parametrize(("row", "literal"), UNUSABLE_AMOUNTS, ids=lambda text: text[:20])
async def test_an_impossible_amount_is_refused(merchant: Merchant, row: str, literal: str) -> None:
    answer = await post(merchant, with_literal("amount", literal))
    assert_refused(answer, 400, INVALID)
    assert [field for field, _ in failures(answer)] == ["amount"]


async def test_b23_18_digits_are_an_amount_but_out_of_range(merchant: Merchant) -> None:
    answer = await post(merchant, with_literal("amount", "9999999999999999.99"))
    assert_refused(answer, 400, "amount_out_of_range")


@pytest.mark.parametrize("row", FIELDS)
async def test_the_error_names_a_field_that_breaks_its_rule(merchant: Merchant, row: str) -> None:
    for path, value in FIELDS[row]:
        answer = await merchant.http.post("/order", json=changed(path, value))
        assert_refused(answer, 400, INVALID)
        assert [field for field, _ in failures(answer)] == [path], value


async def test_b29_tax_and_shipping_together_are_included_in_amount(merchant: Merchant) -> None:
    body = order_body("10.00", taxAmount="6.00", shippingAmount="4.01")
    assert_refused(await merchant.http.post("/order", json=body), 400, INVALID)
    await merchant.create("10.00", taxAmount="6.00", shippingAmount="4.00")


@pytest.mark.parametrize(
    ("path", "value"),
    [("items", {"0": {}}), ("items", "x"), ("items[0].name", 1), ("merchantReference", {}), ("merchantReference", 1.5)],
)  # fmt: skip
async def test_b31_b41_another_json_type_is_malformed(merchant: Merchant, path: str, value: object) -> None:
    assert_refused(await merchant.http.post("/order", json=changed(path, value)), 400, MALFORMED)


async def test_b41_a_quantity_that_is_no_number_is_malformed(merchant: Merchant) -> None:
    assert_refused(await post(merchant, inside('1,"items":[{"quantity":NaN}]')), 400, MALFORMED)


async def test_b41_a_price_as_text_is_a_price(merchant: Merchant) -> None:
    record = await merchant.read(await merchant.create(items=[{"price": "1"}]))
    assert record["items"][0]["price"] == 1


async def test_b42_a_text_of_1_mb_is_too_large(merchant: Merchant) -> None:
    body = order_body("10.00", description="d" * 1_000_000)
    assert_refused(await merchant.http.post("/order", json=body), 413, "body_too_large")


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/json; charset=utf-16"])
async def test_b14_b15_another_media_type_is_415(merchant: Merchant, kind: str) -> None:
    answer = await merchant.http.post("/order", content=BODY, headers={"Content-Type": kind})
    assert_refused(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "text", ['"><script>alert(1)</script>', "{{7*7}}", "${7*7}", "'; DROP TABLE orders; --"]
)
async def test_b45_markup_is_stored_and_returned_as_text(merchant: Merchant, text: str) -> None:
    created = await merchant.create(description=text, items=[{"name": text}], merchantReference=text)
    record = await merchant.read(created)
    assert record["description"] == record["items"][0]["name"] == record["merchantReference"] == text


@pytest.mark.parametrize("row", ADDRESSES)
@pytest.mark.parametrize("name", ["redirectConfirmUrl", "redirectCancelUrl", "statusCallbackUrl"])
async def test_an_address_that_a_browser_reads_differently_is_refused(
    merchant: Merchant, row: str, name: str
) -> None:
    for address in ADDRESSES[row]:
        if name == "statusCallbackUrl" and address == "":
            continue  # an empty text means no address
        answer = await merchant.http.post("/order", json=changed(f"merchant.{name}", address))
        assert_refused(answer, 400, INVALID)
        assert [field for field, _ in failures(answer)] == [f"merchant.{name}"], address


@pytest.mark.parametrize(
    "address",
    ["http://localhost:3000/", "https://shop.example", "https://SHOP.example:8443/a?b=c&d#e", "http://[::1]:8000/x", "https://xn--80ak6aa92e.example/", "http://127.0.0.1:9/%2e%2e?u=https://other.example/"],
)  # fmt: skip
async def test_u10_an_absolute_address_is_accepted_in_the_sandbox(merchant: Merchant, address: str) -> None:
    answer = await merchant.http.post("/order", json=changed("merchant.redirectConfirmUrl", address))
    assert answer.status_code == 200, answer.text
    record: Any = await merchant.read(answer.json())
    kept = record["merchant"]["redirectConfirmUrl"]
    assert kept.lower().rstrip("/").startswith(address.lower().rstrip("/"))


async def test_u10_plain_http_is_refused_in_production() -> None:
    from cuota.web.addresses import BadAddress, read_address

    assert read_address("https://shop.example/", https_only=True)
    with pytest.raises(BadAddress, match="https"):
        read_address("http://shop.example/", https_only=True)


def test_the_bodies_of_these_tests_are_valid_without_their_change() -> None:
    assert json.loads(inside("1"))["extra"] == 1
    assert JSON["Content-Type"] == "application/json"
