"""A PaymentIntent that was made and is not confirmed: the request that confirms it may still be on its way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cuota.rails.card.protocol import PROCESSING, CardOutcome
from cuota.rails.unavailable import RailUnavailable
from support.stripe.processor import StripeProcessor, a_bench


async def test_a_look_up_while_the_charge_is_on_its_way_says_in_progress_and_cancels_nothing(
    processor: StripeProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await a_bench(processor)
    asked, intents = one.charge(), processor.stand_in.intents
    arrived, go, confirm = asyncio.Event(), asyncio.Event(), intents._confirm

    async def slow(*given: Any, **more: Any) -> Any:
        arrived.set()
        await go.wait()
        return await confirm(*given, **more)

    monkeypatch.setattr(intents, "_confirm", slow)
    charging = asyncio.create_task(processor.rail.charge(asked))
    await arrived.wait()
    assert await processor.rail.find_charge(asked) == PROCESSING
    go.set()
    assert (await charging).approved
    found = await processor.rail.find_charge(asked)
    assert found is not None
    assert found.approved


async def test_a_payment_that_was_made_and_never_confirmed_is_canceled_before_it_counts_as_declined(
    processor: StripeProcessor, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await a_bench(processor)
    asked, intents = one.charge(), processor.stand_in.intents

    async def fails(*_given: Any, **_more: Any) -> Any:
        return 500, {"error": {"type": "api_error", "message": "Stripe failed"}}

    monkeypatch.setattr(intents, "_confirm", fails)
    with pytest.raises(RailUnavailable):
        await processor.rail.charge(asked)
    assert await processor.rail.find_charge(asked) == PROCESSING
    monkeypatch.setattr("cuota.rails.card.stripe.IN_FLIGHT_SECONDS", 0)
    found = await processor.rail.find_charge(asked)
    assert found is not None
    assert found.outcome is CardOutcome.DECLINED
    (intent_id,) = intents.by_charge[str(asked.key)]
    assert (await intents.read(intent_id))[1]["status"] == "canceled"
