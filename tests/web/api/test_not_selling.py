"""A suspended merchant, and one that is not approved, makes no new orders by any way in. Everything else goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import httpx
import pytest

from cuota.core.merchant import Onboarding
from cuota.db.onboarding import onboardings
from cuota.flows.merchant.authenticate import FRESH_SECONDS
from cuota.flows.merchant.suspend_merchant import resume_merchant, suspend_merchant
from cuota.web.app import make_app
from support.api.smi_bodies import smi_body
from support.gateway import form_fields, gateway_body, post_form, post_json, signed
from support.makers import Merchant, Running, order_body
from support.own_service import InProcess
from support.signed import sdk_body, send

Start = Callable[[Merchant], Awaitable[httpx.Response]]
SHOP = "https://shop.example"
ADDRESSES = {"redirectConfirmUrl": f"{SHOP}/confirm", "redirectCancelUrl": f"{SHOP}/cancel"}


async def by_order(shop: Merchant) -> httpx.Response:
    return await shop.http.post("/order", json={**order_body(), "merchant": ADDRESSES})


async def by_shop_system(shop: Merchant) -> httpx.Response:
    body = {**smi_body(), "config": {"redirect_uri": f"{SHOP}/back"}}
    return await shop.http.post("/checkouts", json=body)


async def by_script(shop: Merchant) -> httpx.Response:
    return await send(shop, {**sdk_body(shop), "metadata": {"attempt": str(time.time_ns())}})


async def by_gateway(shop: Merchant) -> httpx.Response:
    more = {**ADDRESSES, "metadata": {"attempt": str(time.time_ns())}}
    return await post_json(shop, gateway_body(shop, **more))


WAYS = [by_order, by_shop_system, by_script, by_gateway]
"""Every way in that creates an order."""
CREATED = {200, 303}


async def until(shop: Merchant, start: Start, wanted: set[int]) -> httpx.Response:
    """Start orders until the answer is a wanted one. A process remembers a merchant for two seconds, and then asks again."""
    ends = time.monotonic() + 60
    while (answer := await start(shop)).status_code not in wanted:
        assert time.monotonic() < ends, answer.text
        await asyncio.sleep(0.2)
    return answer


async def test_a_process_remembers_a_merchant_for_less_than_the_five_seconds_that_are_promised() -> None:
    assert FRESH_SECONDS < 5


@pytest.mark.parametrize("start", WAYS)
async def test_a_suspended_merchant_makes_no_new_order_and_a_resumed_one_does(
    merchant: Merchant, start: Start
) -> None:
    context = merchant.service.context
    assert (await start(merchant)).status_code in CREATED
    await suspend_merchant(context, merchant.name, hold=False)
    refused = await until(merchant, start, {403})
    assert refused.json()["code"] == "merchant_suspended"
    assert "Ask your provider" in refused.json()["message"]
    await resume_merchant(context, merchant.name)
    await until(merchant, start, CREATED)


async def test_a_suspended_merchant_captures_voids_refunds_and_reads(auto_merchant: Merchant) -> None:
    shop = replace(auto_merchant)
    order = await shop.approved("100.00")
    await suspend_merchant(shop.service.context, shop.name, hold=False)
    await until(shop, by_order, {403})
    assert (await shop.move(order, "refund", "10.00")).status_code == 200
    assert (await shop.read(order))["orderStatus"] == "Approved"
    for path in ("/configuration", "/events", "/balance", "/payouts", "/disputes", "/orders"):
        assert (await shop.http.get(path)).status_code == 200, path


async def test_a_suspended_merchant_still_captures_and_voids(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    await suspend_merchant(merchant.service.context, merchant.name, hold=True)
    await until(merchant, by_order, {403})
    assert (await merchant.move(order, "capture", "60.00")).status_code == 200
    assert (await merchant.move(order, "void", "40.00")).status_code == 200


async def test_what_was_created_before_is_answered_as_before(merchant: Merchant) -> None:
    key, body = {"Idempotency-Key": "before"}, order_body()
    first = await merchant.http.post("/order", json=body, headers=key)
    text = sdk_body(merchant)
    begun = await send(merchant, text)
    await suspend_merchant(merchant.service.context, merchant.name, hold=False)
    await until(merchant, by_order, {403})
    again = await merchant.http.post("/order", json=body, headers=key)
    assert (again.status_code, again.json()) == (200, first.json())
    assert (await send(merchant, text)).json()["orderId"] == begun.json()["orderId"]


async def test_a_refusal_uses_no_idempotency_key_up(merchant: Merchant) -> None:
    context, key, body = merchant.service.context, {"Idempotency-Key": "later"}, order_body()
    await suspend_merchant(context, merchant.name, hold=False)
    await until(merchant, by_order, {403})
    assert (await merchant.http.post("/order", json=body, headers=key)).status_code == 403
    await resume_merchant(context, merchant.name)
    await until(merchant, by_order, {200})
    assert (await merchant.http.post("/order", json=body, headers=key)).status_code == 200


async def test_a_shopper_in_a_browser_reads_that_the_shop_cannot_take_installments(
    merchant: Merchant,
) -> None:
    await suspend_merchant(merchant.service.context, merchant.name, hold=False)
    answer = await post_form(merchant, signed(merchant, form_fields(merchant)))
    assert answer.status_code == 403
    assert "cannot take payments in installments right now" in answer.text
    assert "merchant_suspended" in answer.text


@pytest.fixture
async def live(merchant: Merchant, service: Running) -> AsyncIterator[Merchant]:
    """The same merchant on a service that runs as production."""
    context = replace(service.context, settings=replace(service.settings, environment="production"))
    running = InProcess(context.settings, context, service.clock, make_app(context))
    async with running.client() as http:
        http.headers["Authorization"] = merchant.http.headers["Authorization"]
        yield replace(merchant, service=running, http=http)


@pytest.mark.parametrize("start", [by_order, by_shop_system, by_gateway])
async def test_production_refuses_orders_of_a_merchant_that_is_not_approved_and_the_sandbox_takes_them(
    merchant: Merchant, live: Merchant, start: Start
) -> None:
    pool = merchant.service.context.pool
    await onboardings.set_standing(pool, merchant.merchant_id, Onboarding.OPEN)
    refused = await start(live)
    assert (refused.status_code, refused.json()["code"]) == (403, "merchant_not_approved")
    assert (await start(merchant)).status_code in CREATED
    await onboardings.set_standing(pool, merchant.merchant_id, Onboarding.APPROVED)
    await until(live, start, CREATED)
