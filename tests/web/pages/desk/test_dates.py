"""The dates of the list of orders: in production, they also bound the ids that are read; in the sandbox, whose clock moves, they do not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from support.makers import Clock
from support.pages.beside import beside
from support.pages.staff import Staff


async def test_dates_bound_the_ids_only_where_the_clock_cannot_be_moved(staff: Staff) -> None:
    order = await staff.shop.approved()
    address = f"/desk/orders/{order['orderId']}"
    await staff.service.context.pool.fetch(
        "UPDATE orders SET created_at = $2 WHERE order_id = $1",
        UUID(order["orderId"]),
        datetime(2024, 5, 5, 12, tzinfo=UTC),
    )
    await staff.enter()
    page = await staff.open("/desk/orders?from=2024-05-05&to=2024-05-05")
    assert address in page.seen.links
    settings = replace(staff.service.settings, environment="production")
    async with beside(staff.service.context, Clock(), settings=settings).client() as http:
        http.cookies = staff.http.cookies
        answer = await http.get("/desk/orders?from=2024-05-05&to=2024-05-05")
        assert answer.status_code == 200
        assert address not in answer.text
        today = datetime.now(UTC).date()
        assert "No order matches." in (await http.get(f"/desk/orders?from={today}")).text
