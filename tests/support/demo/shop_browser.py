"""Simulates a visitor of the demo shop, and the provider behind it."""

from __future__ import annotations

import uuid

import httpx

from cuota_demo.app import make_app
from cuota_demo.settings import ShopSettings
from cuota_demo.store import Store
from support.demo.shop_network import RECORD, Network


class Browser:
    """A visitor of the shop, without a browser. It stores the cookie, and sends the form's token."""

    def __init__(self, settings: ShopSettings, network: Network) -> None:
        app = make_app(settings, httpx.MockTransport(network))
        self.app = app
        self.store: Store = app.state.shop.store
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=settings.public_url)

    async def post(self, url: str, **fields: str) -> httpx.Response:
        page = await self.http.get("/")
        csrf = page.text.split('name="csrf" value="')[1].split('"')[0]
        return await self.http.post(url, data={"csrf": csrf, **fields})

    async def close(self) -> None:
        await self.http.aclose()
        await self.app.state.shop.payments.close()
        self.store.close()

    async def order(self) -> httpx.Response:
        await self.post("/cart", sku="kettle")
        return await self.post("/checkout", key=str(uuid.uuid4()), amount="8995")


def provider(request: httpx.Request) -> httpx.Response:
    if request.method == "POST" and request.url.path == "/order":
        return httpx.Response(200, json={"orderId": "o-1", "redirectUrl": "https://pay.test/c?token=t"})
    return httpx.Response(200, json={**RECORD, "orderStatus": "Declined"})
