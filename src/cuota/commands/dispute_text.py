"""Formats disputes as text for people, and as JSON for scripts."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.commands.common import one_line
from cuota.core import money
from cuota.core.instant import timestamp
from cuota.db.dispute.operator_list import ListedDispute
from cuota.flows.dispute.evidence import Statement
from cuota.flows.dispute.show_dispute import ShownDispute
from cuota.flows.dispute.tell_disputes import dispute_facts, what_next


def listed_facts(each: ListedDispute) -> dict[str, object]:
    """Return an entry of the list."""
    return {
        "merchantId": str(each.merchant_id),
        "merchant": each.merchant,
        **dispute_facts(each.order_id, each.dispute),
        "currency": each.currency,
    }


def detail_facts(merchant_id: UUID, shown: ShownDispute) -> dict[str, object]:
    """Return one dispute with its statements."""
    found, dispute = shown.found, shown.found.dispute
    return {
        "merchantId": str(merchant_id),
        **dispute_facts(found.order_id, dispute),
        "merchantReference": found.merchant_reference,
        "currency": found.currency,
        "payment": found.payment,
        "openedBy": dispute.opened_by.value,
        "openedAt": timestamp(dispute.opened_at),
        "submittedAt": _time(dispute.submitted_at),
        "decidedAt": _time(dispute.decided_at),
        "appealBy": None if dispute.final else _time(dispute.appeal_by),
        "appealedBy": dispute.appealed_by,
        "closedAt": _time(dispute.closed_at),
        "outcome": dispute.outcome,
        "final": dispute.final,
        "refundReference": found.refund_reference,
        "statements": [
            {
                "party": each.party.value,
                "text": each.text,
                "at": timestamp(each.at),
                "files": [
                    {"name": file.name, "mediaType": file.media_type, "size": file.size}
                    for file in each.files
                ],
            }
            for each in shown.statements
        ],
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else timestamp(at)


def list_line(each: ListedDispute) -> str:
    """Return one line of the list."""
    dispute = each.dispute
    return (
        f"{dispute.dispute_id}  {dispute.kind.value:10}  {dispute.status.value:12}  {money.text_of(dispute.amount):>12}"
        f"  {dispute.reason.value:16}  {each.merchant}  ({what_next(dispute)})"
    )


def detail_lines(shown: ShownDispute) -> list[str]:
    """Return one dispute with its statements."""
    found, dispute = shown.found, shown.found.dispute

    def cents(amount: int) -> str:
        return money.shown(amount, found.currency)

    lines = [
        f"{dispute.kind.value.capitalize()} {dispute.dispute_id} about order {found.order_id} (reference {found.merchant_reference})",
        f"{cents(dispute.amount)}, {dispute.reason.value}, opened by the {dispute.opened_by} at {timestamp(dispute.opened_at)}",
        f"Status: {dispute.status} ({what_next(dispute)}). Withheld from the merchant now: {cents(dispute.withheld)}",
    ]
    if found.payment is not None:
        lines.append(f"The chargeback took back payment {found.payment} of the plan")
    if found.refund_reference:
        lines.append(f"The refund has the reference {found.refund_reference}")
    return [*lines, *(line for each in shown.statements for line in _statement(each))]


def _statement(statement: Statement) -> list[str]:
    text = "(erased)" if statement.text is None else statement.text or "(no text)"
    files = [
        f"  file {one_line(file.name)} ({file.media_type}, {file.size} bytes)" for file in statement.files
    ]
    head = f"The {statement.party} wrote at {timestamp(statement.at)}:"
    return ["", head, *(f"  {one_line(line)}" for line in text.splitlines()), *files]
