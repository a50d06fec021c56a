"""The circuit breaker of a card rail: after several calls without an answer, none is sent for a short time."""

from __future__ import annotations

import pytest

from cuota.core.checkout.ending import Charging
from cuota.flows.charge_card import look_up
from cuota.flows.checkout.submit_checkout import NOT_REACHED
from cuota.flows.checkout.take_step import Problem
from cuota.rails.card.breaker import FAILURES, OPEN_SECONDS, Breaker, guarded
from cuota.rails.card.protocol import CardAnswer, declined
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.own_service import Own


class Stopwatch:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


async def call(breaker: Breaker, *, answers: bool) -> str:
    """Make one call. Return what is counted."""
    told: list[str] = []

    async def act() -> CardAnswer:
        if not answers:
            raise RailUnavailable("the line is down")
        return declined("card_declined")

    asked = act()
    try:
        breaker.require_admitted(asked, told.append)
        await guarded(breaker, asked, told.append)
    except RailUnavailable:
        pass
    return told[0]


async def test_it_opens_after_several_failures_in_a_row_and_declines_are_answers() -> None:
    breaker = Breaker(Stopwatch())
    for _ in range(3):
        assert [await call(breaker, answers=False) for _ in range(FAILURES - 1)] == ["failed"] * (FAILURES - 1)
        assert await call(breaker, answers=True) == "answered"
    assert [await call(breaker, answers=False) for _ in range(FAILURES + 2)] == ["failed"] * FAILURES + ["refused"] * 2
    assert await call(breaker, answers=True) == "refused"


async def test_one_trial_call_closes_it_or_opens_it_again() -> None:
    watch = Stopwatch()
    breaker = Breaker(watch)
    for _ in range(FAILURES):
        await call(breaker, answers=False)
    watch.seconds += OPEN_SECONDS
    assert await call(breaker, answers=False) == "failed"
    assert await call(breaker, answers=True) == "refused"
    watch.seconds += OPEN_SECONDS
    assert [breaker.admits(), breaker.admits()] == [True, False]
    watch.seconds += OPEN_SECONDS
    assert [await call(breaker, answers=True) for _ in range(2)] == ["answered"] * 2
