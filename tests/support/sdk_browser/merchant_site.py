"""A merchant's small site on its own origin. It signs on its server, and its page depends on the path."""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from cuota.client import sign
from support.makers import Merchant
from support.ports import free_port

SCRIPT = Path(__file__).with_name("merchant_page.js")
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Small Shop</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">{before}<script type="application/json" id="signed">{signed}</script></head>
<body><main><h1>Small Shop</h1><p>Your cart: $100.00</p>{button}<p id="said" role="status"></p></main>
<script src="/merchant_page.js"></script></body></html>"""
BUTTON = '<button id="buy">Pay in four</button>'
PAY_BUTTON = '<pay-button integrationType="api" id="buy"></pay-button>'
CARD_BUTTON = '<pay-button id="buy"></pay-button>'
STRICT = (
    "default-src 'none'; script-src 'self' {base}; connect-src 'self' {base}; frame-src {frames}; img-src data:; "
    "base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
WITHOUT_SCRIPT = {"late", "unasked", "attacker"}


@dataclass
class Site:
    """The site that all tests share. Each merchant has its own paths."""

    port: int
    base: str
    merchants: dict[str, Merchant] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def elsewhere(self) -> str:
        """Return the same site under another host name, so that a browser treats it and the service as different
        sites."""
        return f"http://localhost:{self.port}"

    def page(self, merchant: Merchant, variant: str = "plain", *, host: str = "", **fields: object) -> str:
        """Return the address of the merchant's page. `fields` become part of the signed request."""
        self.merchants[str(merchant.merchant_id)] = merchant
        query = urlencode({"with": json.dumps(fields)})
        return f"{host or self.origin}/shop/{merchant.merchant_id}/{variant}?{query}"

    async def shop(self, request: Request) -> Response:
        """Make the merchant's page. The server, which has the secret, signs what the page passes to openCheckout."""
        merchant = self.merchants[request.path_params["merchant_id"]]
        variant = request.path_params["variant"]
        body, signature = sign(
            self._request(merchant, json.loads(request.query_params["with"])), merchant.signing_secret
        )
        if variant == "forged":
            signature = sign({"not": "this"}, merchant.signing_secret)[1]
        address = f"{self.base}/v1/pay.js{'?inspect' if variant == 'inspect' else ''}"
        script = f'<script {"async " if variant == "async" else ""}src="{address}"></script>'
        before = "" if variant in WITHOUT_SCRIPT else script * (2 if variant == "twice" else 1)
        button = {"button": PAY_BUTTON, "card": CARD_BUTTON, "attacker": ""}.get(variant, BUTTON)
        signed = json.dumps({"body": body, "signature": signature, "script": address}).replace("<", "\\u003c")
        page = PAGE.format(before=before, signed=signed, button=button)
        return HTMLResponse(page, headers=self._headers(variant))

    def _request(self, merchant: Merchant, fields: dict[str, Any]) -> dict[str, Any]:
        return {
            "merchantId": str(merchant.merchant_id),
            "merchantReference": "S-1",
            "order": {"amount": fields.pop("amount", "100.00"), "currency": "USD"},
            "callbackUrl": f"{self.origin}/webhooks",
            **fields,
        }

    def _headers(self, variant: str) -> dict[str, str]:
        if variant == "coop":
            return {"Cross-Origin-Opener-Policy": "same-origin"}
        if variant in {"strict", "unframed"}:
            frames = self.base if variant == "strict" else "'none'"
            return {"Content-Security-Policy": STRICT.format(base=self.base, frames=frames)}
        return {}

    async def status(self, request: Request) -> Response:
        """Return the order's current record, as the merchant's server reads it."""
        merchant = self.merchants[request.path_params["merchant_id"]]
        order_id = UUID(request.query_params["order"])
        headers = {"Authorization": merchant.http.headers["Authorization"]}
        async with merchant.service.client(headers=headers) as server:
            record = (await server.get(f"/order/{order_id}")).json()
        return JSONResponse(record["orderStatus"])

    async def frame(self, request: Request) -> Response:
        """Make a page that shows another page in a frame, with a sandbox attribute if requested."""
        sandbox = request.query_params.get("sandbox")
        rule = "" if sandbox is None else f' sandbox="{html.escape(sandbox)}"'
        address = html.escape(request.query_params["url"])
        return HTMLResponse(
            f'<!doctype html><title>x</title><link rel="icon" href="data:,"><iframe id="f"{rule} src="{address}"></iframe>'
        )

    async def script(self, request: Request) -> Response:
        del request
        return Response(SCRIPT.read_bytes(), media_type="text/javascript")

    async def home(self, request: Request) -> Response:
        """Show the page to which a redirect returns the browser."""
        self.asked.append((request.url.path, request.url.query))
        return HTMLResponse(
            '<!doctype html><title>Home</title><link rel="icon" href="data:,"><h1>Welcome back</h1>'
        )

    def app(self) -> Starlette:
        routes = [
            Route("/", self.home),
            Route("/confirm", self.home),
            Route("/merchant_page.js", self.script),
            Route("/frame", self.frame),
            Route("/status/{merchant_id}", self.status),
            Route("/shop/{merchant_id}/{variant}", self.shop),
        ]
        return Starlette(routes=routes)


@asynccontextmanager
async def opened_site(base: str) -> AsyncIterator[Site]:
    """Serve the site on loopback."""
    site = Site(free_port(), base)
    config = uvicorn.Config(
        site.app(), host="127.0.0.1", port=site.port, lifespan="off", ws="none", log_config=None,
        access_log=False, timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn says so by a flag only
        await asyncio.sleep(0.01)
    try:
        yield site
    finally:
        server.should_exit = True
        await task
