"""Rows S of bad_inputs.csv: signed requests from a page."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx

from cuota.core.webhook.signature import pay_signature
from support.hostile.world import Row, World, asks, assert_answers
from support.makers import Merchant
from support.signed import sdk_body, send, signature_of

PLACE = {"line1": "12 Main Street", "city": "Miami", "state": "FL", "country": "US", "postalCode": "33101"}


def text(shop: Merchant, **more: Any) -> bytes:
    return json.dumps(sdk_body(shop, **more)).encode()


async def refused(row: Row, code: str, answers: list[httpx.Response]) -> None:
    """Assert that each answer has the row's status and this code."""
    assert_answers(row, {int(row.expect[:3])}, answers)
    assert {answer.json()["code"] for answer in answers} == {code}, row


@asks("S01")
async def signatures(world: World, row: Row) -> None:
    shop, raw = world.merchant, text(world.merchant)
    good = signature_of(shop, raw)
    digest = base64.b64decode(good)
    urlsafe = base64.urlsafe_b64encode(digest).decode()
    # The other base64 alphabet changes the text only if the signature contains a character in which the alphabets
    # differ.
    while urlsafe == good:
        raw += b" "
        digest = base64.b64decode(signature_of(shop, raw))
        good, urlsafe = signature_of(shop, raw), base64.urlsafe_b64encode(digest).decode()
    bad = ["", digest.hex(), urlsafe, base64.b64encode(digest[:31]).decode(), good.rstrip("=")]
    answers = [await send(shop, raw, **{"X-Pay-Signature": each}) for each in bad]
    async with world.service.client() as page:
        headers = {"Content-Type": "application/json", "Origin": "http://127.0.0.1:9"}
        answers.append(await page.post("/sdk/v1/checkouts", content=raw, headers=headers))
        # No client can send a line feed inside a header, so the row's line feed is percent-encoded here.
        answers.append(await send(shop, raw, **{"X-Pay-Signature": f"{good}%0A"}))
    await refused(row, "invalid_signature", answers)
    assert_answers(row, {200}, [await send(shop, raw)])


@asks("S02")
async def other_bytes(world: World, row: Row) -> None:
    shop, raw = world.merchant, text(world.merchant)
    swapped = json.dumps(dict(reversed(sdk_body(shop).items()))).encode()
    bodies = [
        raw.replace(b"100.00", b"900.00"),
        raw.replace(b"B-7", b"B-8"),
        swapped,
        raw + b" ",
        raw.replace(b", ", b","),
    ]
    good = {"X-Pay-Signature": signature_of(shop, raw)}
    await refused(row, "invalid_signature", [await send(shop, each, **good) for each in bodies])


@asks("S05")
async def merchants(world: World, row: Row) -> None:
    shop = world.merchant
    wrong = await send(shop, text(shop), **{"X-Pay-Signature": pay_signature("guess", text(shop))})
    others = ["6f1c1d60-0000-4000-8000-000000000000", str(world.foreign.merchant_id)]
    answers = [await send(shop, {**sdk_body(shop), "merchantId": each}) for each in others]
    await refused(row, "invalid_signature", [wrong, *answers])
    assert {answer.json()["message"] for answer in (wrong, *answers)} == {wrong.json()["message"]}, row
    # The form alone shows that this is not a GUID. So an error about the field reveals nothing about known merchants.
    for each in ("no-guid", 7, None):
        answer = await send(shop, {**sdk_body(shop), "merchantId": each})
        assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed"), row


@asks("S06")
async def twice(world: World, row: Row) -> None:
    shop = world.merchant
    raw = text(shop).replace(b'"amount": "100.00"', b'"amount": "100.00", "amount": "1.00"')
    assert raw.count(b"amount") == 2
    await refused(row, "malformed_request", [await send(shop, raw)])


@asks("S08", "S09", "S16")
async def fields(world: World, row: Row) -> None:
    shop = world.merchant
    orders: dict[str, list[dict[str, Any]]] = {
        "S08": [{"currency": each} for each in (None, "usd", "XXX", "EUR")],
        "S09": [
            {"address": {**PLACE, **each}}
            for each in ({"country": "USA"}, {"state": "XX"}, {"postalCode": "1234"})
        ],
        "S16": [{"merchantFeeForPaymentPlan": each} for each in ("-0.01", -1, "1.005")],
    }
    answers = [await send(shop, sdk_body(shop, order=each)) for each in orders[row.id]]
    await refused(row, "validation_failed", answers)
    assert_answers(row, {200}, [await send(shop, sdk_body(shop, order={"address": PLACE}))])


@asks("S10")
async def descriptions(world: World, row: Row) -> None:
    # Each of these letters is one code point of four bytes.
    items = [{"name": "Shoe", "description": "\U00010330" * 101, "price": 1, "quantity": 1}]
    answer = await send(world.merchant, sdk_body(world.merchant, order={"lineItems": items}))
    assert_answers(row, {200}, [answer])
    record = await world.merchant.read(answer.json())
    assert record["items"][0]["description"] == "\U00010330" * 100


@asks("S14")
async def encodings(world: World, row: Row) -> None:
    shop = world.merchant
    body = sdk_body(shop, merchantReference="Jos\u00e9")
    raw = json.dumps(body, ensure_ascii=False)
    utf8 = await send(shop, raw.encode())
    signed_as_latin = {"X-Pay-Signature": pay_signature(shop.signing_secret, raw.encode("latin-1"))}
    latin = await send(shop, raw.encode(), **signed_as_latin)
    escaped = await send(shop, json.dumps(body).encode())
    assert [each.status_code for each in (utf8, latin, escaped)] == [200, 401, 200], row
