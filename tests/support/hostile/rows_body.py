"""Rows B and U of bad_inputs.csv: bodies of `POST /order`, and the addresses in them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import httpx

from support.api.bad_inputs import ADDRESSES, BODY, FIELDS, MALFORMED_BODIES, UNUSABLE_AMOUNTS
from support.api.bodies import FULL, changed, with_literal
from support.hostile.decided import DECIDED
from support.hostile.world import Row, World, asks, assert_answers, statuses
from support.makers import make_merchant, order_body
from support.pages.visitor import Visitor


async def refused(world: World, row: Row, contents: list[bytes], **headers: str) -> list[httpx.Response]:
    """Send all of these bodies. Each must get the row's answer."""
    answers = [await world.order(content, **headers) for content in contents]
    assert_answers(row, statuses(row, DECIDED), answers)
    return answers


def encoded(path: str, value: object) -> bytes:
    """Return the full body with one value changed."""
    return json.dumps(changed(path, value)).encode()


@asks("B01", "B02", "B03", "B05", "B06", "B07", "B09", "B10", "B11", "B13", "B19", "B27")
async def not_json(world: World, row: Row) -> None:
    contents = [each for name, each in MALFORMED_BODIES.items() if name.startswith(row.id)]
    for answer in await refused(world, row, [content for each in contents for content in each]):
        assert answer.json()["code"] == "malformed_request"


@asks("B14", "B15")
async def media_types(world: World, row: Row) -> None:
    kinds = {
        "B14": ["text/plain", "", "application/xml"],
        "B15": ["application/json; charset=utf-16"],
    }
    for kind in kinds[row.id]:
        await refused(world, row, [BODY.encode()], **{"Content-Type": kind})


@asks("B17", "B18", "B21", "B22")
async def unusable_amounts(world: World, row: Row) -> None:
    contents = [with_literal("amount", text) for name, text in UNUSABLE_AMOUNTS if name == row.id]
    if row.id == "B17":
        contents.append(json.dumps({**order_body(), "amount": None}).encode())
        contents.append(json.dumps({n: v for n, v in order_body().items() if n != "amount"}).encode())
    await refused(world, row, contents)


@asks("B23")
async def eighteen_digits(world: World, row: Row) -> None:
    content = with_literal("amount", "9999999999999999.99")
    (answer,) = await refused(world, row, [content])
    assert answer.json()["code"] == "amount_out_of_range"
    # No merchant's range allows such an amount: every range ends where amounts stop being exact to the cent.
    async with make_merchant(world.service, maximum=10**11) as rich:
        kept = (await rich.http.get(f"/order/{(await rich.create('999999999.99'))['orderId']}")).text
    assert json.loads(kept, parse_float=Decimal)["amount"] == Decimal("999999999.99")


@asks("B25")
async def other_types_of_amount(world: World, row: Row) -> None:
    good = await world.order(with_literal("amount", '"10.00"'))
    assert good.status_code == 200, row
    bad = [await world.order(with_literal("amount", text)) for text in ("true", "[10]", "{}")]
    assert_answers(row, {400}, bad)


@asks("B26")
async def ten(world: World, row: Row) -> None:
    for text in ("1e1", "10.0", "10.00", "1.0E+1"):
        answer = await world.order(with_literal("amount", text))
        assert_answers(row, {200}, [answer])
        assert (await world.merchant.read(answer.json()))["amount"] == 10


@asks("B29", "B30", "B34", "B35", "B38", "B39", "B47")
async def fields(world: World, row: Row) -> None:
    cases = [case for name, listed in FIELDS.items() if name.startswith(row.id) for case in listed]
    contents = [encoded(path, value) for path, value in cases]
    if row.id == "B29":
        contents.append(json.dumps(order_body("10.00", taxAmount="6.00", shippingAmount="4.01")).encode())
    for answer in await refused(world, row, contents):
        assert answer.json()["errors"], row


@asks("B31")
async def references(world: World, row: Row) -> None:
    body = order_body()
    without = {name: value for name, value in body.items() if name != "merchantReference"}
    bad = [
        await world.order(json.dumps(each).encode())
        for each in (without, {**body, "merchantReference": None})
    ]
    assert_answers(row, {400}, bad)
    for given in (7, ""):
        created = await world.merchant.create(merchantReference=given)
        assert (await world.merchant.read(created))["merchantReference"] == str(given)


@asks("B33")
async def merchants(world: World, row: Row) -> None:
    body = {name: value for name, value in order_body().items() if name != "merchant"}
    partly: Any = order_body()
    del partly["merchant"]["redirectConfirmUrl"]
    await refused(world, row, [json.dumps(each).encode() for each in (body, partly)])


@asks("B37")
async def names(world: World, row: Row) -> None:
    for name in ("Jos\u00e9", "Anne-Marie", "Jose\u0301"):
        answer = await world.order(encoded("consumer.givenNames", name))
        assert_answers(row, {200}, [answer])
        assert (await world.merchant.read(answer.json()))["consumer"]["givenNames"] == name


@asks("B41")
async def items(world: World, row: Row) -> None:
    cases = [case for name, listed in FIELDS.items() if name.startswith("B41") for case in listed]
    contents = [encoded(path, value) for path, value in [*cases, ("items", {}), ("items", "x")]]
    contents.append((BODY[:-1] + ',"items":[{"quantity":NaN}]}').encode())
    await refused(world, row, contents)
    assert (await world.order(encoded("items[0].price", "1"))).status_code == 200


@asks("B42")
async def long_text(world: World, row: Row) -> None:
    await refused(world, row, [json.dumps(order_body(description="d" * 1_000_000)).encode()])


@asks("B43")
async def mass_assignment(world: World, row: Row) -> None:
    more = {"orderStatus": "Approved", "orderId": "mine", "captured": 10, "capturedAmount": 10}
    more |= {"merchant_id": str(world.auto_merchant.merchant_id), "__proto__": {"orderStatus": "Approved"}}
    record = await world.merchant.read(await world.merchant.create(**more))
    assert (record["orderStatus"], record["paymentState"], record["capturedAmount"]) == ("Created", "NONE", 0)
    assert record["orderId"] != "mine"
    assert (await world.auto_merchant.http.get(f"/order/{record['orderId']}")).status_code == 404


@asks("B45")
async def markup(world: World, row: Row) -> None:
    for text in ('"><script>alert(1)</script>', "{{7*7}}", "${7*7}"):
        created = await world.merchant.create(
            description=text, items=[{"name": text, "price": 1, "quantity": 1}]
        )
        async with world.service.client() as http:
            page = await Visitor(http).open(created["redirectUrl"])
        assert page.status == 200, row
        assert "<script>" not in page.answer.text
        assert ">49<" not in page.answer.text


@asks("U02", "U03", "U04", "U06", "U07", "U08")
async def addresses(world: World, row: Row) -> None:
    for name in ("redirectConfirmUrl", "redirectCancelUrl", "statusCallbackUrl"):
        # An empty status address counts as no address.
        listed = [each for each in ADDRESSES[row.id] if each or name != "statusCallbackUrl"]
        await refused(world, row, [encoded(f"merchant.{name}", address) for address in listed])


@asks("U10")
async def plain_http(world: World, row: Row) -> None:
    plain = {
        **FULL["merchant"],
        "redirectConfirmUrl": "http://shop.example",
        "redirectCancelUrl": "https://shop.example",
    }
    live = await world.foreign.http.post("/order", json=order_body(merchant=plain))
    assert_answers(row, {400}, [live])
    assert [error["field"] for error in live.json()["errors"]] == ["merchant.redirectConfirmUrl"]
    sandbox = await world.order(encoded("merchant.redirectConfirmUrl", "http://localhost:3000"))
    assert_answers(row, {200}, [sandbox])
