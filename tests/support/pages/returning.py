"""A consumer who bought before in this browser."""

from __future__ import annotations

from typing import Any

from support.makers import Merchant
from support.pages.visitor import Page, Visitor
from support.phones import phone_number


async def bought(shop: Merchant, visitor: Visitor, **fields: str) -> str:
    """Make a first purchase with a new number, and return the number."""
    phone = phone_number()
    page = await visitor.buy(await shop.create(), **{"phone": phone, **fields})
    assert page.outcome == "approved"
    return phone


async def again(shop: Merchant, visitor: Visitor, **more: object) -> tuple[dict[str, Any], Page]:
    """Open the first page of the next checkout."""
    order = await shop.create(**more)
    return order, await visitor.open(order["redirectUrl"])
