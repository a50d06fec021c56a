"""An unconfirmed PaymentIntent, for which the confirming request may still be in progress."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from cuota.rails.card.protocol import PROCESSING, CardAnswer, CardOutcome
from cuota.rails.unavailable import RailUnavailable
from support.stripe.processor import StripeProcessor, a_bench


async def test_a_look_up_during_the_charge_says_in_progress_and_cancels_nothing(
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


async def test_a_payment_that_is_never_confirmed_is_canceled_before_it_counts_as_declined(
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


@pytest.mark.parametrize("same", [True, False], ids=["same parameters", "other return address"])
async def test_an_error_that_stripe_repeats_for_the_idempotency_key_does_not_block_the_charge(
    processor: StripeProcessor, monkeypatch: pytest.MonkeyPatch, *, same: bool
) -> None:
    one = await a_bench(processor)
    asked, intents = one.charge(), processor.stand_in.intents

    async def fails(_pairs: Any) -> Any:
        return 500, {"error": {"type": "api_error", "message": "Stripe failed"}}

    with monkeypatch.context() as while_down:
        while_down.setattr(intents, "create", fails)
        with pytest.raises(RailUnavailable):
            await processor.rail.charge(asked)
    assert await processor.rail.find_charge(asked) is None
    again = asked if same else replace(asked, return_url="http://127.0.0.1:8080/elsewhere")
    answers = await asyncio.gather(*(processor.rail.charge(again) for _ in range(5)), return_exceptions=True)
    assert any(isinstance(answer, CardAnswer) and answer.approved for answer in answers)
    assert await processor.books(asked) == (asked.amount, 0)
