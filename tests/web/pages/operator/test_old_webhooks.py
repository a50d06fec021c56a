"""The operator's page of an order whose webhooks were deleted after their term."""

from __future__ import annotations

from datetime import timedelta

from cuota.db.privacy import retention
from support.api.receiver import receiving
from support.makers import Merchant
from support.pages.operator_staff import OperatorStaff
from support.sending import deliver


async def test_the_page_of_an_order_shows_events_whose_deliveries_were_deleted(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    context = operator.service.context
    async with receiving() as receiver:
        assert (await merchant.http.post("/webhook-endpoints", json={"url": receiver.url})).status_code == 200
        order = await merchant.approved()
        await deliver(merchant)
    later = context.now() + timedelta(minutes=1)
    assert await context.pool.fetch(retention._ATTEMPTS, merchant.merchant_id, later, 200)
    await operator.enter()
    page = await operator.open(f"/operator/orders/{order['orderId']}")
    assert (page.status, "No longer kept" in page.text) == (200, True)
    assert "0 tries" not in page.text
