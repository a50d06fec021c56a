"""Signed requests as a merchant's server makes them, and as the merchant's page sends them."""

from __future__ import annotations

import json
from typing import Any

import httpx

from cuota.core.webhook.signature import pay_signature
from support.makers import Merchant

SHOP = "http://127.0.0.1:9"


def sdk_body(merchant: Merchant, amount: object = "100.00", **more: Any) -> dict[str, Any]:
    """Return a valid request of openCheckout. `order` in more changes parts of the order."""
    order = {"amount": amount, "currency": "USD", **more.pop("order", {})}
    return {
        "merchantId": str(merchant.merchant_id),
        "merchantReference": "B-7",
        "order": order,
        "callbackUrl": f"{SHOP}/webhooks",
        **more,
    }


def signature_of(merchant: Merchant, body: bytes) -> str:
    """Return what the merchant's server signs with its secret."""
    return pay_signature(merchant.signing_secret, body)


async def send(
    merchant: Merchant,
    body: dict[str, Any] | bytes,
    path: str = "",
    *,
    origin: str | None = SHOP,
    **headers: str,
) -> httpx.Response:
    """Send the authorization call of pay.js, from a page of the shop."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Content-Type": "application/json", "X-Pay-Signature": signature_of(merchant, raw), **headers}
    if origin is not None:
        given["Origin"] = origin
    async with merchant.service.client() as page:
        return await page.post(f"/sdk/v1/checkouts{path}", content=raw, headers=given)


async def started(merchant: Merchant, amount: object = "100.00", **more: Any) -> dict[str, Any]:
    """Start a checkout that the page may show."""
    answer = await send(merchant, sdk_body(merchant, amount, **more))
    assert answer.status_code == 200, answer.text
    return dict(answer.json())
