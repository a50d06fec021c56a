"""A charge that the consumer must confirm waits, continues after the confirmation, and can be canceled."""

from __future__ import annotations

import pytest

from cuota.core.plan.declines import AUTHENTICATION_REQUIRED
from cuota.rails.card.protocol import CardOutcome
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.rails.processor import BACK, Processor
from support.rails.promises import bench, waiting


async def test_a_charge_that_waits_for_the_consumer_is_found_with_its_address(
    processor: Processor, rails: CardRails
) -> None:
    asked, url = await waiting(rails, processor)
    found = await rails.find_charge(asked)
    assert found is not None
    assert (found.outcome, found.action_url) == (CardOutcome.REQUIRES_ACTION, url)
    assert await processor.books(asked) == (0, 0)


async def test_a_look_up_finds_the_address_of_the_confirmation_if_the_answer_was_lost(
    processor: Processor, rails: CardRails
) -> None:
    asked = (await bench(processor, "action")).charge(return_url=BACK)
    with processor.lost_answer(), pytest.raises(RailUnavailable):
        await rails.charge(asked)
    found = await rails.find_charge(asked)
    assert found is not None
    assert found.action_url is not None
    assert await processor.confirm(found.action_url, passed=True)
    again = await rails.find_charge(asked)
    assert again is not None
    assert again.approved
    assert await processor.books(asked) == (asked.amount, 0)


async def test_a_confirmed_charge_is_approved(processor: Processor, rails: CardRails) -> None:
    asked, url = await waiting(rails, processor)
    assert await processor.confirm(url, passed=True)
    found = await rails.find_charge(asked)
    assert found is not None
    assert found.approved
    assert await processor.books(asked) == (asked.amount, 0)


async def test_a_refused_confirmation_is_a_decline_that_can_no_longer_be_paid(
    processor: Processor, rails: CardRails
) -> None:
    asked, url = await waiting(rails, processor)
    assert await processor.confirm(url, passed=False)
    found = await rails.find_charge(asked)
    assert found is not None
    assert (found.outcome, found.reason) == (CardOutcome.DECLINED, "authentication_failed")
    assert not await processor.confirm(url, passed=True)
    assert await rails.find_charge(asked) == found
    assert await processor.books(asked) == (0, 0)


async def test_a_confirmed_charge_can_still_be_declined(processor: Processor, rails: CardRails) -> None:
    asked, url = await waiting(rails, processor, "action_declined")
    await processor.confirm(url, passed=True)
    found = await rails.find_charge(asked)
    assert found is not None
    assert found.outcome is CardOutcome.DECLINED
    assert found.reason in {"card_declined", "insufficient_funds"}
    assert await processor.books(asked) == (0, 0)


async def test_a_canceled_charge_can_no_longer_be_paid(processor: Processor, rails: CardRails) -> None:
    asked, url = await waiting(rails, processor)
    ended = await rails.give_up(asked)
    assert (ended.outcome, ended.reason) == (CardOutcome.DECLINED, "authentication_abandoned")
    assert not await processor.confirm(url, passed=True)
    assert await rails.find_charge(asked) == await rails.give_up(asked) == ended
    assert await processor.books(asked) == (0, 0)


async def test_canceling_a_charge_that_was_confirmed_meanwhile_reports_it_as_paid(
    processor: Processor, rails: CardRails
) -> None:
    asked, url = await waiting(rails, processor)
    assert await processor.confirm(url, passed=True)
    assert (await rails.give_up(asked)).approved
    assert await processor.books(asked) == (asked.amount, 0)


async def test_a_charge_whose_cancellation_got_no_answer_has_ended(
    processor: Processor, rails: CardRails
) -> None:
    asked, url = await waiting(rails, processor)
    with processor.lost_answer(), pytest.raises(RailUnavailable):
        await rails.give_up(asked)
    assert (await rails.give_up(asked)).outcome is CardOutcome.DECLINED
    assert not await processor.confirm(url, passed=True)
    assert await processor.books(asked) == (0, 0)


async def test_a_scheduled_charge_cannot_wait_for_the_consumer(
    processor: Processor, rails: CardRails
) -> None:
    asked = (await bench(processor, "action")).charge()
    answer = await rails.charge(asked)
    assert (answer.outcome, answer.reason) == (CardOutcome.DECLINED, AUTHENTICATION_REQUIRED)
    assert await rails.find_charge(asked) == answer
    assert await processor.books(asked) == (0, 0)
