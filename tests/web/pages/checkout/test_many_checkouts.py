"""A browser that opens many checkouts keeps the cookies of the newest only, so that its requests stay small."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import pytest

from support.makers import Merchant, Running
from support.pages.beside import beside
from support.pages.visitor import Visitor, address_of
from support.signed import started

KEPT = 20


@pytest.fixture
async def https(service: Running) -> AsyncIterator[Visitor]:
    """A browser of the same service on https, as in production."""
    settings = replace(service.context.settings, public_url="https://pay.example")
    async with beside(service.context, service.clock, settings=settings).client() as http:
        yield Visitor(http)


def kept(visitor: Visitor, prefix: str = "checkout-") -> list[str]:
    """Return the ids of the orders whose checkout cookies this browser has."""
    return sorted(name.removeprefix(prefix) for name in visitor.http.cookies if name.startswith(prefix))


def plant(visitor: Visitor, count: int, prefix: str = "checkout-", domain: str = "127.0.0.1") -> list[str]:
    """Give this browser the cookies of earlier orders, whose ids are lower. Return these ids."""
    ids = [str(UUID(int=number)) for number in range(1, count + 1)]
    for each in ids:
        visitor.http.cookies.set(f"{prefix}{each}", "secret", domain=domain, path="/")
    return ids


async def opened(merchant: Merchant, visitor: Visitor, count: int) -> list[dict[str, Any]]:
    orders = [await merchant.create() for _ in range(count)]
    for order in orders:
        assert (await visitor.open(order["redirectUrl"])).form("phone")
    return orders


async def test_a_browser_keeps_the_cookies_of_the_20_newest_checkouts(
    merchant: Merchant, visitor: Visitor
) -> None:
    orders = await opened(merchant, visitor, KEPT + 3)
    assert kept(visitor) == [order["orderId"] for order in orders[-KEPT:]]
    assert {"device"} < set(visitor.http.cookies)


async def test_each_kept_checkout_goes_on_in_its_own_tab(merchant: Merchant, visitor: Visitor) -> None:
    orders = await opened(merchant, visitor, KEPT + 1)
    assert (await visitor.open(address_of(orders[0]))).heading == "Start again from the shop"
    tabs = orders[1], orders[-1]
    for order in tabs:
        await visitor.open(address_of(order))
        for step in ("phone", "code", "details"):
            await visitor.send(step)
    for order in tabs:
        await visitor.open(address_of(order))
        assert (await visitor.send("pay")).outcome == "approved"


async def test_a_checkout_whose_cookie_was_deleted_can_be_opened_again(
    merchant: Merchant, visitor: Visitor
) -> None:
    first, *later = await opened(merchant, visitor, KEPT + 1)
    assert (await visitor.open(first["redirectUrl"])).form("phone")
    assert kept(visitor) == [first["orderId"], *(order["orderId"] for order in later[2 - KEPT - 1 :])]
    await visitor.send("phone")
    assert (await visitor.send("code")).form("details")
    assert first["orderId"] in kept(visitor)


async def test_a_popup_deletes_old_cookies_too_and_goes_on(merchant: Merchant, visitor: Visitor) -> None:
    plant(visitor, KEPT + 1)
    order = await started(merchant)
    await visitor.open(order["checkoutUrl"])
    for step in ("phone", "code", "details", "pay"):
        await visitor.send(step)
    assert visitor.page.outcome == "approved"
    assert order["orderId"] in kept(visitor)
    assert len(kept(visitor)) == KEPT


async def test_a_frame_sets_and_deletes_no_cookie(merchant: Merchant, visitor: Visitor) -> None:
    planted = plant(visitor, KEPT + 1)
    order = await started(merchant)
    visitor.http.headers["sec-fetch-dest"] = "iframe"
    await visitor.open(order["checkoutUrl"].replace("display=popup", "display=iframe"))
    for step in ("phone", "code", "details", "pay"):
        await visitor.send(step)
    assert visitor.page.outcome == "approved"
    assert kept(visitor) == planted


async def test_on_https_the_cookies_with_the_host_prefix_are_deleted(
    merchant: Merchant, https: Visitor
) -> None:
    planted = plant(https, KEPT + 4, "__Host-checkout-", "pay.example")
    order = await merchant.create()
    answer = await https.http.get(f"https://pay.example{httpx.URL(order['redirectUrl']).raw_path.decode()}")
    assert kept(https, "__Host-checkout-") == [*planted[5:], order["orderId"]]
    deleted = [text for text in answer.headers.get_list("set-cookie") if "Max-Age=0" in text]
    assert len(deleted) == 5
    for text in deleted:
        # A browser ignores a cookie with this prefix unless it has these attributes, also if the answer deletes it.
        assert {"Path=/", "Secure"} < set(text.split("; "))
        assert "domain" not in text.lower()


async def test_a_browser_with_very_many_cookies_loses_them_in_several_answers_with_small_heads(
    merchant: Merchant, visitor: Visitor
) -> None:
    plant(visitor, KEPT + 60)
    for order in [await merchant.create() for _ in range(8)]:
        answer = await visitor.http.get(order["redirectUrl"])
        # A proxy in front of the service accepts a head of four kilobytes by default.
        assert sum(len(name) + len(value) + 4 for name, value in answer.headers.raw) < 4096
    assert len(kept(visitor)) == KEPT


@pytest.mark.parametrize("name", ["checkout-", "checkout-é", "checkout-(a b)", "checkout-" + "x" * 36])
async def test_a_cookie_with_another_name_changes_nothing(
    merchant: Merchant, visitor: Visitor, name: str
) -> None:
    order = await merchant.create()
    cookies = "; ".join([f"{name}=1", *(f"checkout-{UUID(int=number)}=1" for number in range(KEPT - 1))])
    answer = await visitor.http.get(order["redirectUrl"], headers={b"cookie": cookies.encode()})
    assert answer.status_code == 303
    assert not [text for text in answer.headers.get_list("set-cookie") if "Max-Age=0" in text]
