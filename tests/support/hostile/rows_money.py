"""Rows C and G of bad_inputs.csv: captures, voids, refunds, and the ids in their paths."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx

from cuota.flows.checkout.leave_checkout import leave_checkout
from support.api.bad_moves import AMOUNTS, OPERATIONS
from support.api.bodies import JSON, assert_refused
from support.core.values import PROFILE
from support.hostile.wire import exchange
from support.hostile.world import Row, World, asks, assert_answers
from support.makers import complete

MOVE = {"amount": "1.00", "merchantReference": "x"}
METHODS = [("GET", ""), *(("POST", f"/{operation}") for operation in OPERATIONS)]


async def raw(world: World, order: dict[str, Any], operation: str, literal: str, key: str) -> httpx.Response:
    """Send a movement whose amount is exactly this JSON text."""
    content = f'{{"amount":{literal},"merchantReference":{json.dumps(key)}}}'.encode()
    return await world.merchant.http.post(
        f"/order/{order['orderId']}/{operation}", content=content, headers=JSON
    )


@asks("C01")
async def amounts(world: World, row: Row) -> None:
    order = await world.half_captured()
    for operation in OPERATIONS:
        for literal in AMOUNTS:
            assert_refused(await raw(world, order, operation, literal, "x"), 422, "invalid_amount")
        answer = await world.merchant.http.post(
            f"/order/{order['orderId']}/{operation}", json={"merchantReference": "x"}
        )
        assert_refused(answer, 422, "invalid_amount")
        assert_answers(row, {200}, [await raw(world, order, operation, '"1.00"', "plain")])


@asks("C02")
async def keys(world: World, row: Row) -> None:
    order = await world.half_captured()
    for operation in ("capture", "void"):
        keys: tuple[object, ...] = (None, "", "k" * 101, "k" * 256, {})
        for key in keys:
            body = {"amount": 1, "merchantReference": key}
            answer = await world.merchant.http.post(f"/order/{order['orderId']}/{operation}", json=body)
            assert_refused(answer, 422, "missing_reference")
        missing = await world.merchant.http.post(f"/order/{order['orderId']}/{operation}", json={"amount": 1})
        assert_refused(missing, 422, "missing_reference")
        number = await world.merchant.http.post(
            f"/order/{order['orderId']}/{operation}", json={"amount": 1, "merchantReference": 7}
        )
        assert (number.status_code, number.json()["merchantReference"]) == (200, "7")


@asks("C03")
async def names_of_the_key(world: World, row: Row) -> None:
    order = await world.half_captured()
    for name in ("merchantRefundReference", "merchantReference"):
        body = {"amount": 1, name: name}
        answer = await world.merchant.http.post(f"/order/{order['orderId']}/refund", json=body)
        assert_answers(row, {200}, [answer])
        assert answer.json()["merchantReference"] == name


@asks("C05")
async def never_completed(world: World, row: Row) -> None:
    shop = world.merchant
    created, declined, abandoned = [await shop.create() for _ in range(3)]
    await complete(world.service, shop.merchant_id, declined, profile=replace(PROFILE, surname="Declinetest"))
    await leave_checkout(world.service.context, shop.merchant_id, UUID(abandoned["orderId"]))
    for order, status in ((created, "Created"), (declined, "Declined"), (abandoned, "Abandoned")):
        assert (await shop.read(order))["orderStatus"] == status
        for operation in OPERATIONS:
            assert_refused(await shop.move(order, operation, "1.00"), 422, "order_not_completed")


@asks("C06", "C07")
async def one_cent_more(world: World, row: Row) -> None:
    order = await world.half_captured()
    operation, code = {
        "C06": ("capture", "capture_exceeds_authorized"),
        "C07": ("void", "void_exceeds_uncaptured"),
    }[row.id]
    assert_refused(await world.merchant.move(order, operation, "50.01"), 422, code)
    assert_answers(row, {200}, [await world.merchant.move(order, operation, "50.00")])


@asks("C09", "C10", "C11")
async def repeats(world: World, row: Row) -> None:
    order = await world.half_captured()
    for operation in OPERATIONS if row.id == "C09" else ["capture"]:
        assert (await raw(world, order, operation, "10", "k")).status_code == 200
        again = {"C09": ["10"], "C10": ["9", "10.01"], "C11": ["10", "10.0", "10.00"]}[row.id]
        for literal in again:
            answer = await raw(world, order, operation, literal, "k")
            assert_refused(answer, 422, "duplicate_reference")
            assert answer.json()["original"]["sameRequest"] is (row.id != "C10")
            assert answer.json()["original"]["amount"] == 10


@asks("C13")
async def scope_of_a_key(world: World, row: Row) -> None:
    orders = [await world.half_captured() for _ in range(2)]
    moves = [(orders[0], "capture"), (orders[1], "capture"), (orders[0], "refund")]
    assert_answers(
        row, {200}, [await world.merchant.move(order, kind, "1.00", "same") for order, kind in moves]
    )


@asks("C14")
async def a_rejected_key(world: World, row: Row) -> None:
    order = await world.half_captured()
    assert_refused(await world.merchant.move(order, "refund", "60.00", "r"), 422, "refund_exceeds_captured")
    assert (await world.merchant.move(order, "capture", "50.00", "rest")).status_code == 200
    assert_answers(row, {200}, [await world.merchant.move(order, "refund", "60.00", "r")])


@asks("C15")
async def captured_already(world: World, row: Row) -> None:
    order = await world.auto_merchant.approved("10.00")
    answer = await world.auto_merchant.move(order, "capture", "10.00")
    assert_refused(answer, 422, "capture_exceeds_authorized")


@asks("C21")
async def idempotency_keys(world: World, row: Row) -> None:
    order = await world.half_captured()
    path, content = f"/order/{order['orderId']}/capture", json.dumps(MOVE).encode()
    kind = (b"Content-Type", b"application/json")
    for given in ([b"a", b"a"], [b"k" * 256], ["schl\u00fcssel".encode()], [b""]):
        headers = [kind, *((b"Idempotency-Key", key) for key in given)]
        assert_refused(
            await world.merchant.http.post(path, content=content, headers=headers), 400, "bad_header"
        )
    one, two = [
        await world.merchant.http.post(path, content=content, headers={**JSON, "Idempotency-Key": key})
        for key in ("k-1", '"k-1"')
    ]
    assert (one.status_code, two.headers["idempotency-replayed"], two.content) == (200, "true", one.content)


@asks("G01")
async def ids_of_others(world: World, row: Row) -> None:
    ours = await world.merchant.approved("50.00")
    theirs = [str(uuid4()), "no-guid", ours["orderId"]]
    for shop, ids in ((world.auto_merchant, theirs), (world.foreign, [*theirs[:1], ours["orderId"]])):
        for method, action in METHODS:
            bodies = []
            for name in ids:
                body = MOVE if method == "POST" else None
                answer = await shop.http.request(method, f"/order/{name}{action}", json=body)
                assert_refused(answer, 404, "order_not_found")
                told = answer.json()
                del told["requestId"], told["instance"]
                bodies.append(told)
            assert all(body == bodies[0] for body in bodies), row
    assert (await world.merchant.read(ours))["capturedAmount"] == 0


@asks("G02", "G06")
async def paths(world: World, row: Row) -> None:
    spoilt = {
        "G02": [
            "../configuration",
            "%2e%2e%2f",
            "..%2fconfiguration",
            "%00",
            "1'%20OR%20'1'='1",
            quote("\u0663"),
            "%ff",
        ],
        "G06": ["x/y", "./x", "x/../../configuration"],
    }[row.id]
    listed = [f"/order/{name}" for name in spoilt] + (
        ["//order", "/nobody", "/configuration//"] if row.id == "G06" else []
    )
    token = world.merchant.http.headers["authorization"]
    for path in listed:
        request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nConnection: close\r\n\r\n"
        answer = await exchange(world.port, request.encode())
        assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json"), path[:60]
        assert json.loads(answer.body)["code"] in {"order_not_found", "not_found"}
    if row.id == "G02":
        # The server refuses an address of this length before it looks for a route.
        request = f"GET /order/{'a' * 10_240} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nConnection: close\r\n\r\n"
        assert (await exchange(world.port, request.encode())).status == 414
    if row.id == "G06":
        assert (await world.merchant.http.get("/configuration/")).status_code == 200


@asks("G04")
async def methods(world: World, row: Row) -> None:
    order = await world.merchant.create()
    token = world.merchant.http.headers["authorization"]
    for method in ("PUT", "DELETE", "TRACE", "CONNECT"):
        for path in ("/order", f"/order/{order['orderId']}", "/configuration"):
            request = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n\r\n"
            answer = await exchange(world.port, request.encode())
            assert (answer.status, "GET" in answer.headers.get("allow", "")) == (405, True), (
                method,
                path,
                answer,
            )
    override = {"X-HTTP-Method-Override": "DELETE"}
    assert (await world.merchant.http.get(f"/order/{order['orderId']}", headers=override)).status_code == 200


@asks("G05")
async def accepts(world: World, row: Row) -> None:
    order = await world.merchant.create()
    answer = await world.merchant.http.get(f"/order/{order['orderId']}", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
