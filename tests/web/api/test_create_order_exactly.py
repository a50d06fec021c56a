"""`POST /order` stores exactly the data that was sent."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from support.api.bodies import FULL, assert_refused, post, with_literal
from support.makers import Merchant, make_merchant, order_body


async def test_the_answer_has_the_order_s_id_its_token_its_checkout_address_and_its_expiry(
    merchant: Merchant,
) -> None:
    before = merchant.service.clock.now()
    created = await merchant.create()
    assert set(created) == {"orderId", "token", "redirectUrl", "expiryDateTime", "warnings"}
    guid = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    assert re.fullmatch(guid, created["orderId"])
    assert re.fullmatch(guid, created["token"])
    assert UUID(created["orderId"]).version == 7
    assert UUID(created["token"]).version == 4
    assert created["redirectUrl"].startswith(merchant.service.settings.public_url)
    assert f"token={created['token']}" in created["redirectUrl"]
    ends = datetime.fromisoformat(created["expiryDateTime"])
    lasts = timedelta(minutes=merchant.service.settings.order_minutes)
    assert before + lasts - timedelta(seconds=1) <= ends <= merchant.service.clock.now() + lasts


async def test_order_ids_are_sorted_by_time(merchant: Merchant) -> None:
    ids = [(await merchant.create())["orderId"] for _ in range(5)]
    assert ids == sorted(ids)


@pytest.mark.parametrize(
    "literal", ["1e1", "10.0", "10.00", "1.0E+1", "10", '"10"', '"10.00"', '"10.0000"', "10.0000", "100e-1"]
)
async def test_every_plain_notation_of_ten_is_ten(merchant: Merchant, literal: str) -> None:
    answer = await post(merchant, with_literal("amount", literal))
    assert answer.status_code == 200, answer.text
    record = await merchant.http.get(f"/order/{answer.json()['orderId']}")
    assert re.search(r'"amount":10(\.0{1,2})?[,}]', record.text)


@pytest.mark.parametrize(
    "literal", ["010", "+10", ".5", "5.", "0x10", "1_000", "1,5", "NaN", "Infinity", "-Infinity", "nan", "-"]
)
async def test_a_value_that_is_no_json_number_is_malformed(merchant: Merchant, literal: str) -> None:  # fmt: skip
    assert_refused(await post(merchant, with_literal("amount", literal)), 400, "malformed_request")


@pytest.mark.parametrize(
    "literal",
    [
        '""',
        '" 10"',
        '"10 "',
        '"1e1"',
        '"+10"',
        '".5"',
        '"5."',
        '"1,000"',
        '"$10"',
        '"ten"',
        '"010"',
        '"NaN"',
        '"\\u0661\\u0660"',
    ],
)
async def test_a_string_that_is_no_plain_decimal_is_no_amount(merchant: Merchant, literal: str) -> None:  # fmt: skip
    assert_refused(await post(merchant, with_literal("amount", literal)), 400, "validation_failed")


@pytest.mark.parametrize("amount", ["999999999.99", "0.01", "31.89", "1234.10", "70368744.17"])
async def test_an_amount_is_stored_exactly_to_the_cent(merchant: Merchant, amount: str) -> None:
    async with make_merchant(merchant.service, maximum=100_000_000_000) as rich:
        from cuota.flows.merchant import manage_merchants

        terms = manage_merchants.MerchantTerms(minimum=1)
        await manage_merchants.update_merchant(rich.service.context, str(rich.merchant_id), terms)
        answer = await post(rich, with_literal("amount", amount))
        assert answer.status_code == 200, answer.text
        text = (await rich.http.get(f"/order/{answer.json()['orderId']}")).text
    assert f'"amount":{amount},' in text
    assert f'"originalAmount":{amount},' in text


async def test_other_amounts_and_prices_are_stored_exactly(merchant: Merchant) -> None:
    body = json.dumps(order_body("100.00", items=[{"price": "@", "quantity": 3}], taxAmount="0.07"))
    body = body.replace('"@"', "1234567890123456.78")
    answer = await post(merchant, body.encode())
    text = (await merchant.http.get(f"/order/{answer.json()['orderId']}")).text
    assert '"price":1234567890123456.78' in text
    assert '"taxAmount":0.07' in text


async def test_the_whole_order_is_returned_as_it_was_sent(merchant: Merchant) -> None:
    answer = await merchant.http.post("/order", json=FULL)
    record = (await merchant.http.get(f"/order/{answer.json()['orderId']}")).json()
    for name in ("consumer", "billing", "shipping", "description", "metadata", "merchantReference"):
        assert record[name] == FULL[name], name
    assert record["items"] == [{**item, "price": float(item["price"])} for item in FULL["items"]]
    assert record["merchant"] == {**FULL["merchant"], "statusCallbackUrl": None}
    assert (record["taxAmount"], record["shippingAmount"]) == (8.88, 1.11)
    assert record["merchantFeeForPaymentPlan"] == 2.5


@pytest.mark.parametrize(
    "text",
    [
        "Größe 42, «rot»",
        "Jose\u0301",
        "\U0001f45f shoes",
        '"><script>alert(1)</script>',
        "{{7*7}} ${7*7}",
        'back\\slash "quote" /',
        "\u2028 line",
    ],
)
async def test_texts_are_stored_character_by_character(merchant: Merchant, text: str) -> None:
    created = await merchant.create(description=text, items=[{"name": text, "description": text}])
    record = await merchant.read(created)
    assert record["description"] == text
    assert record["items"][0]["name"] == record["items"][0]["description"] == text


@pytest.mark.parametrize("name", ["José", "Anne-Marie", "Jose\u0301", "Жанна Ли"])
async def test_a_name_with_combining_characters_is_returned_as_it_was_sent(
    merchant: Merchant, name: str
) -> None:
    created = await merchant.create(consumer={"givenNames": name})
    assert (await merchant.read(created))["consumer"]["givenNames"] == name


async def test_an_integer_reference_is_read_as_its_digits(merchant: Merchant) -> None:
    created = await merchant.create(merchantReference=10_420)
    assert (await merchant.read(created))["merchantReference"] == "10420"


async def test_unknown_fields_are_ignored_and_change_nothing(merchant: Merchant) -> None:
    created = await merchant.create(
        orderStatus="Approved", orderId="1", token="x", captured="100.00", capturedAmount=100, merchant_id="x",
        paymentState="CAPTURED", promotions=[1], warnings=["x"], captures=[{"amount": 1}],
        expiryDateTime="2099-01-01T00:00:00Z", originalAmount=1, __proto__={"amount": 1}, autoCapture=True,
    )  # fmt: skip
    record = await merchant.read(created)
    assert record["orderStatus"] == "Created"
    assert record["paymentState"] == "NONE"
    assert record["orderId"] == created["orderId"]
    assert record["token"] == created["token"]
    assert (record["amount"], record["originalAmount"], record["capturedAmount"]) == (100, 100, 0)
    assert (record["currency"], record["promotions"]) == ("USD", None)
    assert record["captures"] == []
    assert {warning["code"] for warning in record["warnings"]} == {"unknown_field"}
    assert len(record["warnings"]) == 14
    assert record["expiryDateTime"] == created["expiryDateTime"]
    assert "__proto__" not in record


async def test_metadata_is_returned_as_it_was_sent_without_its_nulls(merchant: Merchant) -> None:
    created = await merchant.create(metadata={"cart": "c-1", "note": "two\nlines", "gone": None})
    assert (await merchant.read(created))["metadata"] == {"cart": "c-1", "note": "two\nlines"}


async def test_two_orders_may_have_the_same_reference(merchant: Merchant) -> None:
    first, second = await merchant.create(), await merchant.create()
    assert first["orderId"] != second["orderId"]
    assert first["token"] != second["token"]
