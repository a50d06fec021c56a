"""Refunds never exceed the charge, and each is sent once."""

from __future__ import annotations

import asyncio

import pytest

from cuota.rails.card.protocol import CardOutcome, ChargeRequest
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.rails.processor import Processor
from support.rails.promises import bench, or_lost, refund_of


async def charged(processor: Processor, rails: CardRails) -> ChargeRequest:
    asked = (await bench(processor, "pays")).charge(50_00)
    assert (await rails.charge(asked)).approved
    return asked


async def test_a_refund_goes_back_once_for_each_key(processor: Processor, rails: CardRails) -> None:
    asked = await charged(processor, rails)
    refund = refund_of(asked, 20_00)
    for _ in range(3):
        assert (await rails.refund(refund)).approved
    assert await processor.books(asked) == (50_00, 20_00)


async def test_several_refunds_add_up_to_the_charge_and_no_more(
    processor: Processor, rails: CardRails
) -> None:
    asked = await charged(processor, rails)
    for amount in (20_00, 29_99):
        assert (await rails.refund(refund_of(asked, amount))).approved
    more = await rails.refund(refund_of(asked, 2))
    assert (more.outcome, more.reason) == (CardOutcome.DECLINED, "exceeds_charge")
    assert (await rails.refund(refund_of(asked, 1))).approved
    assert await processor.books(asked) == (50_00, 50_00)


async def test_refunds_at_the_same_time_never_exceed_the_charge(
    processor: Processor, rails: CardRails
) -> None:
    asked = await charged(processor, rails)
    answers = await asyncio.gather(*(or_lost(rails.refund(refund_of(asked, 20_00))) for _ in range(6)))
    approved = sum(answer is not None and answer.approved for answer in answers)
    assert approved <= 2
    assert await processor.books(asked) == (50_00, approved * 20_00)


async def test_a_refund_whose_answer_was_lost_is_not_sent_twice(
    processor: Processor, rails: CardRails
) -> None:
    asked = await charged(processor, rails)
    refund = refund_of(asked, 20_00)
    with processor.lost_answer(), pytest.raises(RailUnavailable):
        await rails.refund(refund)
    assert (await rails.refund(refund)).approved
    assert await processor.books(asked) == (50_00, 20_00)


async def test_a_charge_that_was_declined_cannot_be_refunded(processor: Processor, rails: CardRails) -> None:
    asked = (await bench(processor, "no_funds")).charge()
    assert not (await rails.charge(asked)).approved
    assert (await rails.refund(refund_of(asked, 1))).outcome is CardOutcome.DECLINED
    assert await processor.books(asked) == (0, 0)
