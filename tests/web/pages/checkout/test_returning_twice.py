"""A returning consumer presses the only button more than once."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from cuota.core.order.order import Final
from cuota.flows.checkout.recognize_consumer import pay_again
from support.card import BACK
from support.makers import Merchant, Running, read_checkout
from support.pages.returning import again, bought
from support.pages.visitor import Visitor, charges


async def test_eight_presses_at_once_all_show_the_paid_order(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    await bought(merchant, visitor)
    order, page = await again(merchant, visitor)
    action, held = page.form("again")
    answers = await asyncio.gather(*(visitor.http.post(action, data=held) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {303}
    assert await charges(service, order) == [(2500, True, None)]


async def test_a_press_whose_token_was_used_by_the_first_press_shows_the_order(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    """The second request begins before the first one pays, and looks for its card afterwards."""
    await bought(merchant, visitor)
    order, page = await again(merchant, visitor)
    token, order_id = visitor.http.cookies["remembered"], UUID(order["orderId"])
    secret = visitor.http.cookies[f"checkout-{order_id}"]
    seen = await read_checkout(service.context, merchant.merchant_id, order_id, secret)
    agreed = page.form("again")[1]["agreement_hash"]
    assert (await visitor.send("again")).outcome == "approved"
    with pytest.raises(Final):
        await pay_again(service.context, seen, token, agreed, BACK)
