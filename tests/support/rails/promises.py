"""Actions that the tests of card rails share."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from uuid import uuid4

from cuota.rails.card.protocol import CardAnswer, CardOutcome, ChargeRequest, RefundRequest
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.rails.processor import BACK, Bench, Kind, Processor, a_holder


async def bench(processor: Processor, kind: Kind) -> Bench:
    """Return a stored card of this kind. Its token names the rail, as in our own database."""
    holder = a_holder()
    card = await processor.ready(kind, holder)
    return Bench(replace(card, token=f"{processor.rail.name}:{card.token}"), holder)


def refund_of(charge: ChargeRequest, amount: int) -> RefundRequest:
    """Return a refund request with a new key."""
    return RefundRequest(uuid4(), charge.key, charge.token, amount, charge.merchant_id, charge.order_id)


async def or_lost(call: object) -> CardAnswer | None:
    """Await a call. Return None if its answer was lost."""
    with contextlib.suppress(RailUnavailable):
        answer = await call  # type: ignore[misc]
        assert isinstance(answer, CardAnswer)
        return answer
    return None


async def waiting(rails: CardRails, processor: Processor, kind: Kind = "action") -> tuple[ChargeRequest, str]:
    """Return a charge that the consumer must confirm, and the address of the confirmation."""
    asked = (await bench(processor, kind)).charge(return_url=BACK)
    answer = await rails.charge(asked)
    assert answer.outcome is CardOutcome.REQUIRES_ACTION
    assert answer.action_url is not None
    return asked, answer.action_url
