"""Signed requests that a hostile shopper or a merchant's mistake might send."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from uuid import UUID

import httpx
import pytest

from cuota.web.app import make_app
from support.makers import Merchant, Running, complete, make_merchant
from support.signed import SHOP, sdk_body, send, signature_of, started


async def test_an_order_refused_for_its_amount_is_still_refused_after_the_range_changes(
    service: Running,
) -> None:
    async with make_merchant(service, maximum=10_000) as shop:
        over, under = (json.dumps(sdk_body(shop, amount)).encode() for amount in ("100.01", "90.00"))
        assert (await send(shop, over)).json()["code"] == "amount_out_of_range"
        order = (await send(shop, under)).json()
        for _ in range(3):
            await complete(service, shop.merchant_id, order, card="4000 0000 0000 0002")
        sql = "UPDATE merchants SET minimum = $2, maximum = $3 WHERE merchant_id = $1 RETURNING 1"
        await service.context.pool.fetchrow(sql, shop.merchant_id, 100, 50_000)
        for path in ("", "/leave"):
            again = await send(shop, over, path)
            assert (again.status_code, again.json()["code"]) == (400, "amount_out_of_range")
        await service.context.pool.fetchrow(sql, shop.merchant_id, 20_000, 50_000)
        # This order was declined, but it was never out of range.
        assert (await send(shop, under)).json()["orderStatus"] == "Declined"


@pytest.mark.parametrize("number", [b"1e99999999", b"-1E+999999999", b"1e-99999999", b"0e999999999"])
async def test_a_number_with_a_huge_exponent_is_dropped(merchant: Merchant, number: bytes) -> None:
    text = b'{"customerTransactionCount": %s, "customerLoggedIn": true}' % number
    click = base64.urlsafe_b64encode(text).decode().rstrip("=")
    answer = await send(merchant, sdk_body(merchant), **{"X-Pay-Additional": click})
    assert answer.status_code == 200
    assert [warning["field"] for warning in answer.json()["warnings"]] == [
        "additionalData.customerTransactionCount"
    ]
    sql = "SELECT additional->'fields' AS kept FROM sdk_checkouts WHERE order_id = $1"
    row = await merchant.service.context.pool.fetchrow(sql, UUID(answer.json()["orderId"]))
    assert row is not None
    assert json.loads(row["kept"]) == {"customerLoggedIn": True}


async def test_a_virtual_card_is_refused_if_no_page_waits_for_it(merchant: Merchant) -> None:
    body = sdk_body(merchant, integrationType="virtual_card", display="redirect")
    answer = await send(merchant, body)
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == ["display"]
    assert (await started(merchant, display="redirect"))["orderStatus"] == "Created"


async def test_without_an_issuer_a_virtual_card_is_refused_and_no_checkout_starts(merchant: Merchant) -> None:
    context = merchant.service.context
    without = make_app(replace(context, rails=replace(context.rails, issuing=None)))
    raw = json.dumps(sdk_body(merchant, integrationType="virtual_card")).encode()
    headers = {"Content-Type": "application/json", "Origin": SHOP}
    headers["X-Pay-Signature"] = signature_of(merchant, raw)
    transport = httpx.ASGITransport(app=without)
    async with httpx.AsyncClient(transport=transport, base_url=context.settings.public_url) as page:
        answer = await page.post("/sdk/v1/checkouts", content=raw, headers=headers)
        assert answer.status_code == 400
        assert [error["field"] for error in answer.json()["errors"]] == ["integrationType"]
        left = await page.post("/sdk/v1/checkouts/leave", content=raw, headers=headers)
        assert left.status_code == 404
