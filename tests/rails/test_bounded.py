"""Only a plain yes or no of a card rail counts. Anything else counts as no answer, and the charge is looked up."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from cuota.rails.bounded import BoundedCardRail
from cuota.rails.card import CardAnswer
from cuota.rails.unavailable import RailUnavailable

KEY = uuid4()


class Says:
    """A rail that always gives this answer, or raises it."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def charge(self, *_: object) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    find_charge = refund = charge


@pytest.mark.parametrize(
    "answer", [CardAnswer("false"), CardAnswer(None, None), {"approved": True}, None, True, ValueError("bad JSON")],  # type: ignore[arg-type]
    ids=repr,
)  # fmt: skip
async def test_an_answer_that_cannot_be_read_is_no_answer(answer: Any) -> None:
    rail = BoundedCardRail(Says(answer))  # type: ignore[arg-type]
    for call in (rail.charge(KEY, "t", 1, "USD"), rail.refund(KEY, KEY, 1)):
        with pytest.raises(RailUnavailable):
            await call


@pytest.mark.parametrize("reason", ["no\0funds", "x" * 5_000_000, 7, "bad \ud800", "Not Honored", None, ""])
async def test_a_no_for_an_unreadable_reason_is_a_plain_no(reason: Any) -> None:
    rail = BoundedCardRail(Says(CardAnswer(False, reason)))  # type: ignore[arg-type]
    assert await rail.charge(KEY, "t", 1, "USD") == CardAnswer(False, "card_declined")


async def test_a_charge_that_the_rail_never_got_is_none_and_a_readable_no_keeps_its_reason() -> None:
    assert await BoundedCardRail(Says(None)).find_charge(KEY) is None  # type: ignore[arg-type]
    said = CardAnswer(False, "insufficient_funds")
    assert await BoundedCardRail(Says(said)).find_charge(KEY) == said  # type: ignore[arg-type]
