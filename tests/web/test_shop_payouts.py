"""The shop reconciles its payouts with the real service: its orders, its fees, and its own stored webhooks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from cuota.client.money import json_text
from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota_demo.app import make_app
from cuota_demo.records import WebhookEvent
from cuota_demo.settings import ShopSettings
from cuota_demo.store import Store
from support.contract import read_json
from support.demo.shop_network import ENVIRONMENT
from support.makers import Merchant
from support.settlement_rows import Row, close, lines_of_the_feed, paid, write_terms


@dataclass
class Staffed:
    """The shop's back office, its store, and the merchant whose account it uses."""

    http: httpx.AsyncClient
    store: Store
    merchant: Merchant

    async def told(self) -> None:
        """Store the webhooks of all events so far."""
        answer = await self.merchant.http.get("/events")
        for event in read_json(answer.content)["events"]:
            self.store.keep_told(WebhookEvent.read(event), json_text(event))


@pytest.fixture
async def shop(merchant: Merchant, tmp_path: Path) -> AsyncIterator[Staffed]:
    given = {
        **ENVIRONMENT, "SHOP_DATA": str(tmp_path), "SHOP_API_URL": merchant.service.settings.public_url,
        "SHOP_AUTH_URL": merchant.service.settings.auth_url, "SHOP_AUDIENCE": merchant.service.settings.audience,
        "SHOP_CLIENT_ID": merchant.client_id, "SHOP_CLIENT_SECRET": merchant.client_secret,
    }  # fmt: skip
    app = make_app(ShopSettings.from_environment(given))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8001") as http:
        yield Staffed(http, app.state.shop.store, merchant)
    await app.state.shop.payments.close()
    app.state.shop.store.close()


async def settled(merchant: Merchant) -> str:
    await write_terms(merchant)
    order = await merchant.approved("119.96", merchantReference="AO-1042")
    for kind, amount in (("capture", "119.96"), ("refund", "20.00")):
        assert (await merchant.move(order, kind, amount)).status_code == 200
    await publish_events(merchant.service.context)
    await lines_of_the_feed(merchant)
    return await close(merchant)


async def test_a_shop_without_payouts_says_so(shop: Staffed) -> None:
    answer = await shop.http.get("/payouts")
    assert answer.status_code == 200
    assert "No payouts yet" in answer.text


async def test_the_payout_agrees_with_the_shop_s_own_webhooks(shop: Staffed) -> None:
    payout_id = await settled(shop.merchant)
    await shop.told()
    listed = (await shop.http.get("/payouts")).text
    assert f"/payouts/{payout_id}" in listed
    assert "$92.58" in listed
    shown = (await shop.http.get(f"/payouts/{payout_id}")).text
    for text in ("AO-1042", "$99.96", "-$7.38", "$92.58", "agrees with the shop", "to the cent"):
        assert text in shown, text


async def test_the_page_names_a_line_that_no_webhook_reported(shop: Staffed) -> None:
    payout_id = await settled(shop.merchant)
    shown = (await shop.http.get(f"/payouts/{payout_id}")).text
    assert "does not agree" in shown
    assert "none of your events reports it" in shown


async def test_an_unknown_payout_is_not_found(shop: Staffed, auto_merchant: Merchant) -> None:
    theirs = await paid(auto_merchant, Row("capture", 100))
    for payout_id in (theirs, str(uuid4())):
        assert (await shop.http.get(f"/payouts/{payout_id}")).status_code == 404
