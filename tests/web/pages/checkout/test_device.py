"""A browser stores a device id, so that many orders from one device are noticed. The id gives access to nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.cookies import SimpleCookie
from typing import Any
from uuid import UUID

import httpx

from support.makers import Merchant, Running
from support.pages.visitor import Visitor
from support.phones import phone_number

YEAR = 365 * 24 * 3600


def given(answer: httpx.Response) -> Any:
    """Return the cookie that an answer sets."""
    [text] = [text for text in answer.headers.get_list("set-cookie") if text.startswith("device=")]
    return SimpleCookie(text)["device"]


async def kept(service: Running, order: dict[str, Any]) -> bytes:
    """Return what the order's session stores about the browser."""
    sql = "SELECT device_hash FROM checkout_sessions WHERE order_id = $1"
    [row] = await service.context.pool.fetch(sql, UUID(order["orderId"]))
    return bytes(row["device_hash"])


async def test_a_browser_keeps_one_device_id_for_a_year_in_a_cookie_without_script_access_and_the_database_has_only_its_hash(
    service: Running, merchant: Merchant, auto_merchant: Merchant, visitor: Visitor
) -> None:
    hashes = set()
    for shop in (merchant, auto_merchant):
        order = await shop.create()
        cookie = given(await visitor.http.get(order["redirectUrl"]))
        assert (cookie["httponly"], cookie["max-age"], cookie["samesite"]) == (True, str(YEAR), "lax")
        hashes.add(await kept(service, order))
    assert hashes == {service.context.vault.hash("device", visitor.http.cookies["device"])}


async def test_the_next_order_from_the_same_browser_is_recognized_whoever_pays_it(
    service: Running, merchant: Merchant, auto_merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    same, other = visit(), visit()
    seen = []
    for shop, visitor in ((merchant, same), (auto_merchant, same), (merchant, other)):
        order = await shop.create()
        assert (await visitor.buy(order, phone=phone_number())).outcome == "approved"
        sql = "SELECT inputs FROM decisions WHERE order_id = $1"
        [row] = await service.context.pool.fetch(sql, UUID(order["orderId"]))
        seen.append(json.loads(row["inputs"])["velocity"]["device"])
    assert seen == [0, 1, 0]


async def test_an_oversized_device_id_is_replaced(merchant: Merchant, visit: Callable[..., Visitor]) -> None:
    visitor = visit(cookies=httpx.Cookies({"device": "x" * 5000}))
    order = await merchant.create()
    assert "xxx" not in given(await visitor.http.get(order["redirectUrl"])).value
