"""Rows K and H of bad_inputs.csv: the links of the checkout, and HTTP itself."""

from __future__ import annotations

import json

from support.hostile.decided import DECIDED
from support.hostile.wire import exchange
from support.hostile.world import Row, World, asks, statuses
from support.makers import Merchant, order_body
from support.pages.visitor import Visitor
from support.server.smuggled import SMUGGLED

SECRETIVE = {
    "H01": [
        "length and chunked",
        "two lengths",
        "length -1",
        "length +5",
        "length 5,5",
        "xchunked",
        "chunked twice",
    ],
    "H02": [
        "line feeds only",
        "folded header",
        "space before colon",
        "NUL in a header",
        "no host",
        "two hosts",
    ],
}


def head_of(merchant: Merchant, *lines: str) -> bytes:
    """Return the head of a `POST /order`, except the fields that give the length of its body."""
    token = merchant.http.headers["authorization"]
    given = [
        "POST /order HTTP/1.1",
        "Host: x",
        f"Authorization: {token}",
        "Content-Type: application/json",
        *lines,
    ]
    return ("\r\n".join(given) + "\r\n\r\n").encode()


@asks("H01", "H02")
async def smuggled(world: World, row: Row) -> None:
    for name in SECRETIVE[row.id]:
        answer = await exchange(world.port, SMUGGLED[name])
        assert (answer.status, answer.closed) == (400, True), (name, answer)


@asks("H04")
async def endless(world: World, row: Row) -> None:
    declared = await exchange(world.port, head_of(world.merchant, "Content-Length: 10737418240"))
    assert declared.status == 413, row
    chunked = head_of(world.merchant, "Transfer-Encoding: chunked")
    # The header announces a gigabyte. The server ends the request after 256 KiB.
    many = await exchange(world.port, chunked + (b"2000\r\n" + b" " * 8192 + b"\r\n") * 40)
    assert many.status == 413, row
    body = json.dumps(order_body()).encode()
    piece = b"%x" % len(body)
    assert (await exchange(world.port, chunked + piece + b"\r\n" + body + b"\r\n0\r\n\r\n")).status == 200
    flood = await exchange(
        world.port, chunked + piece + b";" + b"a=b;" * 20_000 + b"\r\n" + body + b"\r\n0\r\n\r\n"
    )
    trailers = await exchange(world.port, chunked + piece + b"\r\n" + body + b"\r\n0\r\nX-Late: 1\r\n\r\n")
    assert (flood.status, trailers.status, trailers.closed) == (400, 400, True), row


@asks("H06")
async def expecting(world: World, row: Row) -> None:
    head = head_of(world.merchant, "Expect: 100-continue", "Content-Length: 262145")
    answer = await exchange(world.port, head)
    assert answer.status == 413, row


@asks("H09")
async def preflight(world: World, row: Row) -> None:
    headers = {"Origin": "https://evil", "Access-Control-Request-Method": "POST"}
    for path in ("/order", "/configuration", "/oauth/token"):
        answer = await world.merchant.http.options(path, headers=headers)
        assert not [name for name in answer.headers if name.startswith("access-control-")], row


@asks("K01")
async def links(world: World, row: Row) -> None:
    open_, approved, foreign = (
        await world.merchant.create(),
        await world.merchant.approved("50.00"),
        await world.foreign.create(
            merchant={
                "redirectConfirmUrl": "https://shop.example/",
                "redirectCancelUrl": "https://shop.example/",
            }
        ),
    )
    link, token = open_["redirectUrl"], open_["token"]
    base = world.service.settings.public_url
    theirs = f"{base}/checkout/{world.foreign.merchant_id}?token={foreign['token']}"
    flipped = link.replace(token, token[:-1] + ("0" if token[-1] != "0" else "1"))
    urls = [link.partition("?")[0], link[:-5], flipped, theirs, approved["redirectUrl"]]
    async with world.service.client() as http:
        pages = [await Visitor(http).open(url) for url in urls]
        async with world.service.clock.moved(minutes=61):
            pages.append(await Visitor(http).open(link))
    for page in pages:
        assert page.status in statuses(row, DECIDED), row
        assert world.merchant.name not in page.answer.text
        assert world.foreign.name not in page.answer.text
