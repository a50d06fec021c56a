"""A charge is made at most once, and can be looked up."""

from __future__ import annotations

import asyncio

import pytest

from cuota.core.plan.declines import is_hard
from cuota.rails.card.protocol import CardOutcome
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.rails.processor import BACK, Kind, Processor
from support.rails.promises import bench, or_lost


@pytest.mark.parametrize("return_url", [BACK, None], ids=["consumer present", "by schedule"])
async def test_the_same_key_gives_the_same_answer_and_charges_once(
    processor: Processor, rails: CardRails, return_url: str | None
) -> None:
    asked = (await bench(processor, "pays")).charge(return_url=return_url)
    answers = [await rails.charge(asked) for _ in range(3)]
    assert [answer.outcome for answer in answers] == [CardOutcome.APPROVED] * 3
    assert await processor.books(asked) == (asked.amount, 0)


async def test_two_keys_are_two_charges(processor: Processor, rails: CardRails) -> None:
    card = await bench(processor, "pays")
    first, second = card.charge(), card.charge()
    assert (await rails.charge(first)).approved
    assert await rails.find_charge(second) is None
    assert (await rails.charge(second)).approved
    assert await processor.books(first) == await processor.books(second) == (first.amount, 0)


async def test_twenty_requests_at_once_with_the_same_key_charge_once(
    processor: Processor, rails: CardRails
) -> None:
    asked = (await bench(processor, "pays")).charge()
    answers = await asyncio.gather(*(or_lost(rails.charge(asked)) for _ in range(20)))
    known = [answer for answer in answers if answer is not None]
    assert known
    assert all(answer.approved for answer in known)
    found = await rails.find_charge(asked)
    assert found is not None
    assert found.approved
    assert await processor.books(asked) == (asked.amount, 0)


async def test_a_charge_whose_answer_was_lost_is_found_and_not_repeated(
    processor: Processor, rails: CardRails
) -> None:
    asked = (await bench(processor, "pays")).charge()
    with processor.lost_answer(), pytest.raises(RailUnavailable):
        await rails.charge(asked)
    found = await rails.find_charge(asked)
    assert found is not None
    assert found.approved
    assert (await rails.charge(asked)).approved
    assert await processor.books(asked) == (asked.amount, 0)


async def test_a_charge_that_never_arrived_is_not_found_and_can_be_requested_again(
    processor: Processor, rails: CardRails
) -> None:
    asked = (await bench(processor, "pays")).charge()
    with processor.lost_request(), pytest.raises(RailUnavailable):
        await rails.charge(asked)
    assert await rails.find_charge(asked) is None
    assert (await rails.charge(asked)).approved
    assert await processor.books(asked) == (asked.amount, 0)


async def test_a_look_up_that_fails_is_no_answer(processor: Processor, rails: CardRails) -> None:
    asked = (await bench(processor, "pays")).charge()
    assert (await rails.charge(asked)).approved
    with processor.lost_request(), pytest.raises(RailUnavailable):
        await rails.find_charge(asked)


@pytest.mark.parametrize(
    ("kind", "reason", "hard"), [("no_funds", "insufficient_funds", False), ("lost", "card_lost", True)]
)
async def test_a_decline_has_a_code_that_says_whether_a_retry_makes_sense(
    processor: Processor, rails: CardRails, kind: Kind, reason: str, *, hard: bool
) -> None:
    asked = (await bench(processor, kind)).charge()
    answer = await rails.charge(asked)
    assert (answer.outcome, answer.reason) == (CardOutcome.DECLINED, reason)
    assert is_hard(reason) is hard
    assert await rails.find_charge(asked) == answer
    assert await rails.charge(asked) == answer
    assert await processor.books(asked) == (0, 0)


async def test_a_decline_whose_answer_was_lost_is_found(processor: Processor, rails: CardRails) -> None:
    asked = (await bench(processor, "no_funds")).charge(return_url=BACK)
    with processor.lost_answer(), pytest.raises(RailUnavailable):
        await rails.charge(asked)
    found = await rails.find_charge(asked)
    assert found is not None
    assert (found.outcome, found.reason) == (CardOutcome.DECLINED, "insufficient_funds")
