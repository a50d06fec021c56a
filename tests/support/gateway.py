"""Requests to the gateway as a merchant's server signs them, and as a browser sends them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote_plus, urlencode

import httpx

from cuota.core.webhook.signature import pay_signature
from support.makers import Merchant

SHOP = "http://127.0.0.1:9"
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
Fields = list[tuple[str, str]]


def gateway_body(merchant: Merchant, amount: object = "100.00", **more: Any) -> dict[str, Any]:
    """Return a valid JSON request. `order` in more changes parts of the order."""
    return {
        "merchantId": str(merchant.merchant_id),
        "merchantReference": "G-7",
        "order": {"amount": amount, "currency": "USD", **more.pop("order", {})},
        "capture": False,
        "redirectConfirmUrl": f"{SHOP}/confirm?order=7",
        "redirectCancelUrl": f"{SHOP}/cancel",
        **more,
    }


async def post_json(
    merchant: Merchant, body: dict[str, Any] | bytes, signature: str | None = None, **headers: str
) -> httpx.Response:
    """Send the request from the merchant's server."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Content-Type": "application/json", **headers}
    given["X-Pay-Signature"] = signature or pay_signature(merchant.signing_secret, raw)
    async with merchant.service.client() as server:
        return await server.post("/orders/authorize", content=raw, headers=given)


def form_fields(merchant: Merchant, **changed: str | None) -> Fields:
    """Return a valid form. `changed` replaces fields by dotted name; None removes a field."""
    fields: dict[str, str | None] = {
        "merchantId": str(merchant.merchant_id),
        "merchantReference": "G-7",
        "order.amount": "100.00",
        "order.currency": "USD",
        "capture": "false",
        "redirectConfirmUrl": f"{SHOP}/confirm?order=7",
        "redirectCancelUrl": f"{SHOP}/cancel",
        **changed,
    }
    return [(name, value) for name, value in fields.items() if value is not None]


def signed(merchant: Merchant, fields: Fields) -> Fields:
    """Add the signature, made as the docs say and without the service's own code."""
    text = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in sorted(fields))
    return [*fields, ("signature", pay_signature(merchant.signing_secret, text.encode()))]


async def post_form(merchant: Merchant, fields: Fields | bytes, **headers: str) -> httpx.Response:
    """Send fields as a browser does, unless `Accept` says otherwise. They are sent as they are, signed or not."""
    raw = fields if isinstance(fields, bytes) else urlencode(fields).encode()
    async with merchant.service.client() as page:
        return await page.post("/orders/authorize", content=raw, headers={**BROWSER, **FORM, **headers})


async def get_link(merchant: Merchant, fields: Fields, **headers: str) -> httpx.Response:
    """Send the request as a link that a browser follows."""
    async with merchant.service.client() as page:
        return await page.get(f"/orders/authorize?{urlencode(fields)}", headers={**BROWSER, **headers})


async def form(merchant: Merchant, **changed: str | None) -> httpx.Response:
    """Send a signed form from a server, which gets refusals as JSON."""
    return await post_form(merchant, signed(merchant, form_fields(merchant, **changed)), Accept="*/*")


async def at_once(call: Callable[[], Awaitable[httpx.Response]]) -> str:
    """Make a call 64 times at once. All successful answers must contain one address, which is returned. Allow 503, for
    busy machines."""
    answers = await asyncio.gather(*(call() for _ in range(64)))
    told = [(answer.status_code, answer.text[:200]) for answer in answers if answer.status_code != 303]
    assert {status for status, _ in told} <= {503}, told
    (address,) = {answer.headers["location"] for answer in answers if answer.status_code == 303}
    return str(address)


async def orders_of(merchant: Merchant) -> int:
    """Return the number of orders."""
    sql = "SELECT count(*) AS n FROM orders WHERE merchant_id = $1"
    row = await merchant.service.context.pool.fetchrow(sql, merchant.merchant_id)
    assert row is not None
    return int(row["n"])


async def record_of(merchant: Merchant, answer: httpx.Response) -> dict[str, Any]:
    """Return the order behind a redirect, as its merchant reads it."""
    assert answer.status_code == 303, answer.text
    token = httpx.URL(answer.headers["location"]).params["token"]
    found = await merchant.http.get("/order", params={"token": token})
    assert found.status_code == 200, found.text
    return dict(found.json())
