"""An erased consumer is deleted at the processor. The cards are gone, but payments can still be refunded."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from cuota.db.privacy.erasure import AT_STRIPE
from cuota.rails.card.protocol import CardOutcome, RefundRequest
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.makers import Running
from support.rails.processor import Bench, Processor, a_holder


async def erased(service: Running, rails: CardRails, consumer_id: UUID) -> None:
    """Do the steps of an erasure: first remove the person from the rail's table, then call the processor."""
    await service.context.pool.execute(AT_STRIPE, consumer_id)
    await rails.forget(rails.active.name, consumer_id)


async def kept(processor: Processor, rails: CardRails, consumer_id: UUID | None = None) -> Bench:
    holder = a_holder(consumer_id)
    return Bench(await rails.keep(await processor.browser_token("pays"), holder), holder)


async def test_the_cards_of_an_erased_consumer_cannot_be_charged_but_their_payments_can_be_refunded(
    service: Running, processor: Processor, rails: CardRails
) -> None:
    bench, other = await kept(processor, rails), await kept(processor, rails)
    paid = bench.charge(10_00)
    assert (await rails.charge(paid)).approved
    for _ in range(2):
        await erased(service, rails, bench.holder.consumer_id)
    assert (await rails.charge(bench.charge(5_00))).outcome is CardOutcome.DECLINED
    found = await rails.find_charge(paid)
    assert found is not None
    assert found.approved
    refund = RefundRequest(uuid4(), paid.key, paid.token, 10_00, paid.merchant_id, paid.order_id)
    assert (await rails.refund(refund)).approved
    assert (await rails.charge(other.charge())).approved


async def test_a_person_who_comes_back_after_an_erasure_can_pay_with_a_new_card(
    service: Running, processor: Processor, rails: CardRails
) -> None:
    bench = await kept(processor, rails)
    await erased(service, rails, bench.holder.consumer_id)
    again = await kept(processor, rails, bench.holder.consumer_id)
    assert (await rails.charge(again.charge())).approved


async def test_a_lost_request_to_forget_is_reported_and_can_be_repeated(
    service: Running, processor: Processor, rails: CardRails
) -> None:
    bench = await kept(processor, rails)
    with processor.lost_request(), pytest.raises(RailUnavailable):
        await erased(service, rails, bench.holder.consumer_id)
    assert (await rails.charge(bench.charge())).approved
    await rails.forget(rails.active.name, bench.holder.consumer_id)
    assert (await rails.charge(bench.charge())).outcome is CardOutcome.DECLINED
