"""Disputes as JSON members."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.dispute.dispute import Dispute
from cuota.core.instant import timestamp
from cuota.core.money import decimal_from
from cuota.flows.dispute.evidence import Statement
from cuota.flows.dispute.show_dispute import ShownDispute

DisputeMembers = dict[str, object]


def dispute_json(order_id: UUID, dispute: Dispute, payment: int | None) -> DisputeMembers:
    """Return an entry of the list of disputes. Only a chargeback is about one `payment`."""
    return {
        "disputeId": dispute.dispute_id,
        "orderId": order_id,
        "kind": dispute.kind,
        "reason": dispute.reason,
        "amount": decimal_from(dispute.amount),
        "status": dispute.status,
        "respondBy": timestamp(dispute.respond_by),
        **({} if payment is None else {"payment": payment}),
    }


def dispute_detail(shown: ShownDispute) -> DisputeMembers:
    """Return one dispute with its times and statements."""
    found, dispute = shown.found, shown.found.dispute
    return {
        **dispute_json(found.order_id, dispute, found.payment),
        "merchantReference": found.merchant_reference,
        "currency": found.currency,
        "openedAt": timestamp(dispute.opened_at),
        "withheld": decimal_from(dispute.withheld),
        "submittedAt": _time(dispute.submitted_at),
        "decidedAt": _time(dispute.decided_at),
        "appealBy": None if dispute.final else _time(dispute.appeal_by),
        "appealedBy": dispute.appealed_by,
        "closedAt": _time(dispute.closed_at),
        "outcome": dispute.outcome,
        "final": dispute.final,
        "refundReference": found.refund_reference,
        "statements": [_statement(each) for each in shown.statements],
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else timestamp(at)


def _statement(statement: Statement) -> DisputeMembers:
    return {
        "party": statement.party,
        "text": statement.text,
        "at": timestamp(statement.at),
        "files": [
            {
                "fileId": f"{statement.evidence_id}-{file.number}",
                "name": file.name,
                "mediaType": file.media_type,
                "size": file.size,
            }
            for file in statement.files
        ],
    }
