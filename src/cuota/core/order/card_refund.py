"""The result of a card refund: the card network has accepted the money, or refused it, or a chargeback returned it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from cuota.core.ledger import Transfer
from cuota.core.order import posting
from cuota.core.order.job import CardRefund, JobState, Settled
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome

CHARGED_BACK = "a chargeback returned the same money"


def settle_card_refund(
    order: Order, asked: CardRefund, reason: str | None, now: datetime, borne: int = 0
) -> Outcome:
    """Record the rail's answer. `reason` is None after a success. The amount of a failed refund stays owed to the consumer.

    `borne` are the cents that Cuota lost in chargebacks of this charge (`covered`).
    """
    if reason is None:
        return Outcome(
            order=order,
            transfers=tuple(posting.card_refund(asked.card_refund_id, asked.amount)),
            card_refunds_settled=(Settled(asked.card_refund_id, JobState.SUCCEEDED),),
            at=now,
        )
    transfers, settled = _failed(asked, reason, borne)
    return Outcome(order=order, transfers=transfers, card_refunds_settled=settled, at=now)


def fail_later(order: Order, done: CardRefund, reason: str, now: datetime, borne: int = 0) -> Outcome:
    """Record that the bank sent back a refund that had succeeded. Its amount is owed to the consumer again.

    `borne` are the cents that Cuota lost in chargebacks of this charge (`covered`).
    """
    transfers, settled = _failed(done, reason, borne)
    returned = posting.card_refund_failed(done.card_refund_id, done.amount)
    return Outcome(order=order, transfers=(*returned, *transfers), card_refunds_settled=settled, at=now)


def cover(order: Order, waiting: CardRefund, borne: int, now: datetime) -> Outcome | None:
    """Settle a refund for which no rail was asked, as far as lost chargebacks have returned the money. None if they have not."""
    transfers, settled = covered([waiting], borne)
    if not transfers:
        return None
    return Outcome(order=order, transfers=transfers, card_refunds_settled=settled, at=now)


def pay_otherwise(
    order: Order, card_refund_id: UUID, left: int, reason: str | None, now: datetime
) -> Outcome:
    """Record that the operator has paid a failed refund in another way. `left` are the cents that were still owed."""
    return Outcome(
        order=order,
        transfers=tuple(posting.refund_paid_otherwise(card_refund_id, left)),
        card_refunds_settled=(Settled(card_refund_id, JobState.PAID_OTHERWISE, reason),),
        at=now,
    )


def _failed(asked: CardRefund, reason: str, borne: int) -> tuple[tuple[Transfer, ...], tuple[Settled, ...]]:
    transfers, settled = covered([asked], borne)
    return transfers, settled or (Settled(asked.card_refund_id, JobState.FAILED, reason),)


def covered(refunds: Sequence[CardRefund], borne: int) -> tuple[tuple[Transfer, ...], tuple[Settled, ...]]:
    """Settle the refunds of a charge that are not on the card, if lost chargebacks of the charge returned the same money.

    `borne` are the cents of these chargebacks that Cuota bears: money that Cuota owed the consumer already. If a refund exceeds the
    rest of `borne`, only the difference is still owed, and the refund keeps its state. The amounts are what is left to refund.
    """
    transfers: list[Transfer] = []
    settled: list[Settled] = []
    for each in refunds:
        part = max(0, min(each.amount, borne))
        borne -= part
        transfers += posting.refund_charged_back(each.card_refund_id, part)
        if part and part == each.amount:
            settled.append(Settled(each.card_refund_id, JobState.CHARGED_BACK, CHARGED_BACK))
    return tuple(transfers), tuple(settled)
