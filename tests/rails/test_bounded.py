"""Only a clear approval or decline of a card rail counts. Anything else counts as no answer, and the charge is looked
up."""

from __future__ import annotations

from typing import Any

import pytest

from cuota.rails.card.protocol import CardAnswer, CardOutcome, declined, requires_action
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.rails.parts import a_charge, a_refund


class Says:
    """A rail that always gives this answer, or raises it."""

    name = "says"

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def charge(self, *_: object) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    find_charge = give_up = refund = charge


def rails(answer: Any) -> CardRails:
    return CardRails(Says(answer))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "answer", [CardAnswer("false"), CardAnswer(None, None), {"approved": True}, None, True, ValueError("bad JSON"),  # type: ignore[arg-type]
        CardAnswer(CardOutcome.REQUIRES_ACTION), requires_action("javascript:alert(1)"), requires_action("https://b/" + "x" * 5000)],
    ids=lambda answer: repr(answer)[:60],
)  # fmt: skip
async def test_an_unreadable_answer_counts_as_no_answer(answer: Any) -> None:
    for call in (
        rails(answer).charge(a_charge()),
        rails(answer).give_up(a_charge()),
        rails(answer).refund(a_refund()),
    ):
        with pytest.raises(RailUnavailable):
            await call


@pytest.mark.parametrize("reason", ["no\0funds", "x" * 5_000_000, 7, "bad \ud800", "Not Honored", None, ""])
async def test_a_decline_with_an_unreadable_reason_is_a_decline_without_a_reason(reason: Any) -> None:
    assert await rails(declined(reason)).charge(a_charge()) == declined("card_declined")


async def test_an_unknown_charge_is_none_and_a_decline_keeps_its_readable_reason() -> None:
    assert await rails(None).find_charge(a_charge()) is None
    assert await rails(declined("insufficient_funds")).find_charge(a_charge()) == declined(
        "insufficient_funds"
    )
