"""The limit above which a second person of a merchant's team must approve a movement of money."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from support.makers import Merchant
from support.pages.staff import Staff


@contextmanager
def second_person_above(merchant: Merchant, cents: int) -> Iterator[None]:
    """Set the limit, as the operator does by CUOTA_DESK_SECOND_PERSON_ABOVE."""
    app = merchant.service.app
    before = app.service
    context = replace(before.context, settings=replace(before.settings, desk_second_above=cents))
    app.service = replace(before, context=context)
    yield
    app.service = before


async def captured(staff: Staff, order: dict[str, Any]) -> int:
    """Return the captured amount of an order, in cents."""
    (row,) = await staff.service.context.pool.fetch(
        "SELECT captured FROM orders WHERE merchant_id = $1 AND order_id = $2",
        staff.shop.merchant_id, UUID(order["orderId"]),
    )  # fmt: skip
    return int(row["captured"])
