"""Undelivered events are fetched by Stripe's clock, even in a sandbox whose own clock was moved ahead."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from cuota.flows.plan.fetch_card_events import fetch_card_events
from cuota.rails.card.protocol import ChargeRequest
from cuota.rails.card.rails import CardRails
from support.own_service import Own
from support.stripe.processor import StripeProcessor, a_bench
from support.stripe.stand_in import StandIn


async def test_events_are_fetched_in_a_sandbox_whose_clock_was_moved_ahead(
    own: Own, stand_in: StandIn
) -> None:
    processor = StripeProcessor(own.context.pool, stand_in)
    context = replace(own.context, rails=replace(own.context.rails, card=CardRails(processor.rail)))
    merchant_id = own.auto_merchant.merchant_id
    order_id = UUID((await own.auto_merchant.approved("100.00"))["orderId"])
    bench = await a_bench(processor)
    try:
        for number, days in enumerate((60, 30)):
            own.service.clock.ahead += timedelta(days=days)
            await fetch_card_events(context)
            asked = replace(bench.charge(), merchant_id=merchant_id, order_id=order_id)
            assert isinstance(asked, ChargeRequest)
            assert (await processor.rail.charge(asked)).approved
            own.service.clock.ahead += timedelta(days=2)
            assert await fetch_card_events(context) >= 1, number
            found = await own.context.pool.fetch(
                "SELECT FROM card_events WHERE rail = 'stripe' AND charge_id = $1", asked.key
            )
            assert found
    finally:
        await processor.close()
