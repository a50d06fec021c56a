"""Both clients list orders, and fetch each page only when it is needed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cuota.client import Order, RequestRefused
from support.client_tools import Both
from support.makers import Merchant


async def test_orders_are_read_page_by_page_with_filters(shop: Both, merchant: Merchant) -> None:
    made = [(await merchant.create(merchantReference="R-1"))["orderId"] for _ in range(5)]
    await merchant.create(merchantReference="R-2")
    seen: list[Order] = [order async for order in shop.orders(merchant_reference="R-1", page_size=2)]
    assert [order.order_id for order in seen] == made[::-1]
    assert {(order.merchant_reference, order.status) for order in seen} == {("R-1", "Created")}
    day = datetime.now(UTC).date()
    since = [
        o
        async for o in shop.orders(
            status="Created,Approved", created_from=day, created_to=day + timedelta(days=2)
        )
    ]
    assert len(since) == 6
    assert [order async for order in shop.orders(created_from=datetime.now(UTC) + timedelta(days=1))] == []


async def test_a_time_without_a_zone_and_an_unknown_status_are_refused(shop: Both) -> None:
    with pytest.raises(ValueError, match="has no time zone"):
        [order async for order in shop.orders(created_from=datetime(2026, 11, 21))]  # noqa: DTZ001
    with pytest.raises(
        TypeError, match="created_from must be a datetime with a time zone or a date, not str"
    ):
        [order async for order in shop.orders(created_from="2026-11-21")]  # type: ignore[arg-type]
    with pytest.raises(RequestRefused, match="status"):
        [order async for order in shop.orders(status="paid")]
