"""Opens a consumer's dispute: the amount is withheld from the merchant, and the plan is paused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from cuota.core import money
from cuota.core.dispute.claims import Claims, planned
from cuota.core.dispute.dispute import (
    MOST_DISPUTES,
    OPEN_WITHIN,
    RESPOND_WITHIN,
    Dispute,
    DisputeKind,
    DisputeOutcome,
    DisputeParty,
    DisputeReason,
    DisputeStatus,
)
from cuota.core.dispute.evidence import Evidence
from cuota.core.dispute.pause import pause
from cuota.core.installment import Installment, next_at, room
from cuota.core.order import posting
from cuota.core.order.event import Event
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.core.plan.notice import Notice, NoticeKind
from cuota.core.refusal import Code, Refused


@dataclass(frozen=True, slots=True)
class DisputeRequest:
    """A consumer's claim. `amount` is in cents. `party` is the operator if the operator opens it for the consumer."""

    reason: DisputeReason
    amount: int
    party: DisputeParty = DisputeParty.CONSUMER
    evidence: Evidence | None = None


def disputable(order: Order, plan: Sequence[Installment], claims: Claims) -> int:
    """Return the largest amount that can be disputed now, in cents: captured, and not given back yet."""
    if order.status is not Status.APPROVED:
        return 0
    return min(order.refundable, room(plan, claims.taken_back)[0]) - order.disputed


def open_dispute(
    order: Order,
    plan: Sequence[Installment],
    asked: DisputeRequest,
    claims: Claims,
    dispute_id: UUID,
    now: datetime,
    new_id: Callable[[], UUID],
) -> Outcome:
    """Open a dispute. Raises Refused with a sentence for the consumer."""
    _require_possible(order, asked, disputable(order, plan, claims), now)
    if asked.party is DisputeParty.CONSUMER and (problem := why_no_more(claims)):
        raise Refused(Code.DISPUTE_NOT_POSSIBLE, problem)
    respond_by = now + RESPOND_WITHIN
    opened = Dispute(
        dispute_id, DisputeKind.DISPUTE, asked.reason, DisputeStatus.OPEN, asked.amount, asked.amount, asked.party, now,
        respond_by,
    )  # fmt: skip
    paused = pause(plan) if order.paused_at is None else ()
    return Outcome(
        order=replace(
            order,
            disputed=asked.amount,
            open_disputes=order.open_disputes + 1,
            paused_at=order.paused_at or now,
            collect_at=next_at(planned(plan, paused)),
        ),
        installments=paused,
        disputes=(opened,),
        evidence=asked.evidence,
        transfers=tuple(posting.dispute_withheld(dispute_id, asked.amount)),
        notices=(
            Notice(
                new_id(),
                NoticeKind.DISPUTE_OPENED,
                1,
                asked.amount,
                respond_by.astimezone(claims.zone).date(),
                now,
            ),
        ),
        events=(Event("dispute.opened", asked.amount, str(dispute_id)),),
        at=now,
    )


def why_no_more(claims: Claims) -> str:
    """Return why the consumer cannot open another dispute about the order, or "". The operator can open one for the consumer."""
    if any(each.outcome is DisputeOutcome.WON for each in claims.closed):
        return "A dispute about this order was decided for the shop, finally. If you have something new, write to us."
    if (count := len(claims.closed)) >= MOST_DISPUTES:
        return f"There were {count} disputes about this order already. To open another one, write to us."
    return ""


def _require_possible(order: Order, asked: DisputeRequest, most: int, now: datetime) -> None:
    if order.disputed:
        raise Refused(
            Code.DISPUTE_NOT_POSSIBLE,
            "A dispute about this order is open already. Add to it what is missing.",
        )
    if not most:
        raise Refused(
            Code.DISPUTE_NOT_POSSIBLE,
            "The shop has not received any money for this order that you do not have back already.",
        )
    if now >= order.created_at + OPEN_WITHIN:
        raise Refused(
            Code.DISPUTE_NOT_POSSIBLE,
            f"A dispute is possible until {OPEN_WITHIN.days} days after the order; this order is older.",
        )
    if asked.reason is DisputeReason.OTHER:
        raise Refused(Code.DISPUTE_NOT_POSSIBLE, "Choose a reason.")
    if not 0 < asked.amount <= most:
        raise Refused(
            Code.DISPUTE_NOT_POSSIBLE, f"The amount must be between 0.01 and {money.text_of(most)}."
        )
