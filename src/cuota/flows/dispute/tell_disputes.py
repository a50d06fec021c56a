"""Describes the disputes and return notices of an order for an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cuota.core import money
from cuota.core.dispute.dispute import Dispute, DisputeKind, DisputeStatus
from cuota.core.dispute.return_notice import ReturnNotice
from cuota.core.instant import timestamp
from cuota.db.dispute import disputes
from cuota.flows.context import Context


@dataclass(frozen=True, slots=True)
class ToldDisputes:
    """The same description in two forms: `facts` for scripts, `lines` for people."""

    facts: dict[str, Any]
    lines: list[str]


async def tell_disputes(context: Context, merchant_id: UUID, order_id: UUID, currency: str) -> ToldDisputes:
    """Return the descriptions of an order's disputes and return notices, the earliest first."""
    found = await disputes.of_order(context.pool, merchant_id, order_id)
    returns = await disputes.returns_of_order(context.pool, merchant_id, order_id)
    facts = {
        "disputes": [dispute_facts(order_id, each) for each in found],
        "returns": [_return_facts(each) for each in returns],
    }
    lines = [*(_line(each, currency) for each in found), *(_return_line(each) for each in returns)]
    return ToldDisputes(facts, lines)


def dispute_facts(order_id: UUID, dispute: Dispute) -> dict[str, Any]:
    """Return a dispute's state for scripts."""
    return {
        "disputeId": str(dispute.dispute_id),
        "orderId": str(order_id),
        "kind": dispute.kind.value,
        "reason": dispute.reason.value,
        "amount": money.text_of(dispute.amount),
        "withheld": money.text_of(dispute.withheld),
        "status": dispute.status.value,
        "respondBy": timestamp(dispute.respond_by),
    }


def what_next(dispute: Dispute) -> str:
    """Return a text about the next step of a dispute, or about its outcome."""
    if dispute.status is DisputeStatus.CLOSED:
        return f"ended: {dispute.outcome}"
    if dispute.kind is DisputeKind.CHARGEBACK and dispute.status is not DisputeStatus.OPEN:
        return "waits for the card network"
    if dispute.status is DisputeStatus.OPEN:
        return f"the merchant has until {timestamp(dispute.respond_by)}"
    if dispute.status in {DisputeStatus.UNDER_REVIEW, DisputeStatus.APPEALED}:
        return "WAITS FOR YOUR DECISION"
    if dispute.final:
        return "final; the money moves at once"
    assert dispute.appeal_by is not None
    return f"can be appealed until {timestamp(dispute.appeal_by)}; then the money moves"


def _line(dispute: Dispute, currency: str) -> str:
    amount = money.shown(dispute.amount, currency)
    return (
        f"{dispute.kind.capitalize()} {dispute.dispute_id}: {amount}, {dispute.reason}, {dispute.status}"
        f" ({what_next(dispute)}). More: cuota dispute show {dispute.dispute_id}"
    )


def _return_line(notice: ReturnNotice) -> str:
    until = (
        f"the wait ended at {timestamp(notice.ended_at)}"
        if notice.ended_at
        else f"until {timestamp(notice.hold_until)}"
    )
    waits = f"installment {notice.installment} waits for the refund, " if notice.installment else ""
    return f"The consumer sent the goods back ({notice.carrier} {notice.tracking}) at {timestamp(notice.noticed_at)}: {waits}{until}."


def _return_facts(notice: ReturnNotice) -> dict[str, Any]:
    return {
        "returnId": str(notice.return_id),
        "carrier": notice.carrier,
        "trackingNumber": notice.tracking,
        "noticedAt": timestamp(notice.noticed_at),
        "holdUntil": timestamp(notice.hold_until),
        "installment": notice.installment,
        "endedAt": None if notice.ended_at is None else timestamp(notice.ended_at),
    }
