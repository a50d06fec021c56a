"""A card rail that fails again and again is not called for a while; then one call tries it."""

from __future__ import annotations

from typing import Any

import pytest

from cuota.rails.card.breaker import MOST_FAILURES, PAUSE_SECONDS, Breaker
from cuota.rails.card.protocol import APPROVED, CardAnswer, ChargeRequest, declined
from cuota.rails.card.rails import CardRails
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.rails.unavailable import RailUnavailable
from support.rails.parts import a_charge, rail_parts


class Line(SandboxCardRail):
    """A processor on a line that can be cut, with a clock that the test moves."""

    says: CardAnswer | None = None
    calls = 0

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        self.calls += 1
        if self.says is None:
            raise RailUnavailable("the line is cut")
        return self.says


class Moved:
    at = 1000.0

    def __call__(self) -> float:
        return self.at


def opened() -> tuple[Line, CardRails, Moved]:
    nothing: Any = None
    line, clock = Line(*rail_parts(nothing)), Moved()
    rails = CardRails(line)
    rails.breakers[line.name] = Breaker(line.name, clock)
    return line, rails, clock


async def fail(rails: CardRails, times: int) -> None:
    for _ in range(times):
        with pytest.raises(RailUnavailable):
            await rails.charge(a_charge())


async def test_after_five_failures_in_a_row_the_rail_is_not_called_until_the_pause_is_over() -> None:
    line, rails, clock = opened()
    await fail(rails, MOST_FAILURES + 20)
    assert line.calls == MOST_FAILURES
    line.says = APPROVED
    clock.at += PAUSE_SECONDS - 1
    await fail(rails, 1)
    clock.at += 1
    assert await rails.charge(a_charge()) == APPROVED
    assert await rails.charge(a_charge()) == APPROVED
    assert line.calls == MOST_FAILURES + 2


async def test_one_call_that_fails_after_the_pause_begins_another_pause() -> None:
    line, rails, clock = opened()
    await fail(rails, MOST_FAILURES)
    clock.at += PAUSE_SECONDS
    await fail(rails, 10)
    assert line.calls == MOST_FAILURES + 1


async def test_a_decline_is_an_answer_and_never_opens_the_breaker() -> None:
    line, rails, _ = opened()
    line.says = declined("insufficient_funds")
    for _ in range(MOST_FAILURES * 2):
        await rails.charge(a_charge())
    assert line.calls == MOST_FAILURES * 2


async def test_failures_that_an_answer_interrupts_do_not_open_the_breaker() -> None:
    line, rails, _ = opened()
    for _ in range(3):
        line.says = None
        await fail(rails, MOST_FAILURES - 1)
        line.says = APPROVED
        await rails.charge(a_charge())
    assert line.calls == 3 * MOST_FAILURES
