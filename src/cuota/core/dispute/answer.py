"""The steps of an open dispute: evidence, acceptance, decision, appeal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, tzinfo
from uuid import UUID

from cuota.core.dispute.dispute import (
    APPEAL_WITHIN,
    Dispute,
    DisputeEdge,
    DisputeKind,
    DisputeParty,
    DisputeStatus,
    dispute_edge,
    refuse_state,
)
from cuota.core.dispute.evidence import Evidence
from cuota.core.order.event import Event
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.plan.notice import Notice, NoticeKind
from cuota.core.refusal import Code, Refused


def submit_evidence(order: Order, dispute: Dispute, evidence: Evidence, now: datetime) -> Outcome:
    """Add the merchant's evidence. The merchant can send more until the dispute is decided. Raises Refused."""
    if dispute.is_late(now):
        raise refuse_state(dispute, "The time to answer this dispute is over.")
    step = dispute_edge(dispute, "submit")
    changed = replace(dispute, status=step.after, submitted_at=now)
    return _outcome(order, changed, step.event, now, evidence=evidence)


def add_statement(order: Order, dispute: Dispute, evidence: Evidence, now: datetime) -> Outcome:
    """Add the consumer's text or files while the dispute is undecided. The state does not change. Raises Refused."""
    require_addable(dispute)
    return Outcome(order=order, disputes=(dispute,), evidence=evidence, at=now)


def require_addable(dispute: Dispute) -> None:
    """Raise Refused if the consumer cannot add to the dispute any more."""
    if dispute.kind is DisputeKind.CHARGEBACK or dispute.status not in {
        DisputeStatus.OPEN,
        DisputeStatus.UNDER_REVIEW,
        DisputeStatus.APPEALED,
    }:
        raise refuse_state(dispute, "Nothing more can be added to this dispute.")


def remind(order: Order, dispute: Dispute, now: datetime) -> Outcome:
    """Remind the merchant of its deadline."""
    step = dispute_edge(dispute, "remind")
    return _outcome(order, replace(dispute, reminded=True), step.event, now)


def decide(
    order: Order,
    dispute: Dispute,
    move: str,
    zone: tzinfo,
    now: datetime,
    new_id: Callable[[], UUID],
    evidence: Evidence | None = None,
) -> Outcome:
    """Decide for one side: `accept`, `expire`, `decide_for_merchant` or `decide_for_consumer`. Raises Refused.

    The losing side may appeal once. After that time, or at once if nobody may appeal, the dispute is closed and the
    money moves. The merchant's acceptance and the decision about an appeal are final.
    """
    if dispute.kind is DisputeKind.CHARGEBACK and move != "accept":
        raise Refused(Code.DISPUTE_NOT_POSSIBLE, "The card network decides a chargeback.")
    step = dispute_edge(dispute, move)
    final = move == "accept" or dispute.appealed_at is not None
    until = now if final else now + APPEAL_WITHIN
    appeal_by = until if dispute.kind is DisputeKind.DISPUTE else None
    changed = replace(dispute, status=step.after, decided_at=now, appeal_by=appeal_by, final=final)
    kind = NoticeKind.DISPUTE_REJECTED if step.after is DisputeStatus.WON else NoticeKind.DISPUTE_UPHELD
    notices: tuple[Notice, ...] = ()
    if dispute.kind is DisputeKind.DISPUTE and not final:
        notices = (Notice(new_id(), kind, 1, dispute.withheld, until.astimezone(zone).date(), now),)
    return replace(_outcome(order, changed, step.event, now, evidence=evidence), notices=notices)


def appeal(
    order: Order,
    dispute: Dispute,
    party: DisputeParty,
    evidence: Evidence,
    now: datetime,
    new_id: Callable[[], UUID],
) -> Outcome:
    """Appeal for the losing side, once, within the allowed time. Raises Refused."""
    step = require_appeal(dispute, party, now)
    changed = replace(dispute, status=step.after, appealed_by=party, appealed_at=now, appeal_by=None)
    told = Notice(new_id(), NoticeKind.DISPUTE_APPEALED, 1, dispute.withheld, now.date(), now)
    notices = (told,) if party is DisputeParty.MERCHANT else ()
    return replace(_outcome(order, changed, step.event, now, evidence=evidence), notices=notices)


def require_appeal(dispute: Dispute, party: DisputeParty, now: datetime) -> DisputeEdge:
    """Return the edge of an appeal by this side. Raises Refused if the side cannot appeal now."""
    if dispute.kind is DisputeKind.CHARGEBACK:
        raise Refused(
            Code.DISPUTE_NOT_POSSIBLE, "The card network decides a chargeback; nobody can appeal here."
        )
    step = dispute_edge(dispute, "appeal")
    loser = DisputeParty.CONSUMER if dispute.status is DisputeStatus.WON else DisputeParty.MERCHANT
    if party is not loser:
        raise refuse_state(dispute, "Only the side that lost can appeal.")
    if dispute.final or dispute.appeal_by is None or now >= dispute.appeal_by:
        raise refuse_state(dispute, "This decision is final: it cannot be appealed any more.")
    return step


def _outcome(
    order: Order, dispute: Dispute, event: str, now: datetime, evidence: Evidence | None = None
) -> Outcome:
    told = Event(event, dispute.amount, str(dispute.dispute_id))
    return Outcome(order=order, disputes=(dispute,), evidence=evidence, events=(told,), at=now)
