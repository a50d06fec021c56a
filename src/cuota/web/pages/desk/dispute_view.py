"""Builds the values for the dashboard's pages about disputes, from the merchant's side."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cuota.core import money
from cuota.core.dispute.answer import require_appeal
from cuota.core.dispute.dispute import (
    Dispute,
    DisputeKind,
    DisputeOutcome,
    DisputeParty,
    DisputeReason,
    DisputeStatus,
)
from cuota.core.refusal import Refused
from cuota.flows.dispute.evidence import Statement
from cuota.web.pages.desk.view import when
from cuota.web.pages.desk.visit import PATH
from cuota.web.pages.render import PageContext

DISPUTES = f"{PATH}/disputes"
REASONS = {
    DisputeReason.NOT_RECEIVED: "Not received",
    DisputeReason.NOT_AS_DESCRIBED: "Not as described",
    DisputeReason.NOT_REFUNDED: "Returned, not refunded",
    DisputeReason.WRONG_AMOUNT: "Wrong amount",
    DisputeReason.NOT_MINE: "Not the consumer's order",
    DisputeReason.OTHER: "No reason given",
}
STATES = {
    DisputeStatus.OPEN: ("Answer it", "bad"),
    DisputeStatus.UNDER_REVIEW: ("Under review", "wait"),
    DisputeStatus.WON: ("Decided for you", "done"),
    DisputeStatus.LOST: ("Decided for the consumer", "bad"),
    DisputeStatus.APPEALED: ("Appealed", "wait"),
}
OUTCOMES = {
    DisputeOutcome.WON: ("Won", "done"),
    DisputeOutcome.LOST: ("Lost", "bad"),
    DisputeOutcome.WITHDRAWN: ("Withdrawn", "done"),
    DisputeOutcome.RESOLVED: ("Settled by a refund", "off"),
}
PARTIES = {
    DisputeParty.CONSUMER: "The consumer",
    DisputeParty.MERCHANT: "You",
    DisputeParty.OPERATOR: "Your provider",
    DisputeParty.NETWORK: "The card network",
}
# The states in which the merchant may still send evidence, or accept.
ANSWERABLE = frozenset({DisputeStatus.OPEN, DisputeStatus.UNDER_REVIEW, DisputeStatus.APPEALED})


def dispute_state(dispute: Dispute) -> PageContext:
    """Return the state as a word with a mark."""
    if dispute.status is DisputeStatus.CLOSED:
        word, kind = OUTCOMES[dispute.outcome or DisputeOutcome.RESOLVED]
    else:
        word, kind = STATES[dispute.status]
    return {"word": word, "kind": kind}


def next_words(dispute: Dispute, now: datetime) -> str:
    """Return a text with the next step and its deadline, or with the result of a closed dispute."""
    chargeback = dispute.kind is DisputeKind.CHARGEBACK
    if dispute.status is DisputeStatus.CLOSED:
        return {
            DisputeOutcome.WON: "The dispute was decided for you. The withheld amount is released.",
            DisputeOutcome.LOST: "The dispute was decided for the consumer, who got the money back.",
            DisputeOutcome.WITHDRAWN: "The consumer withdrew the dispute. The withheld amount is released.",
            DisputeOutcome.RESOLVED: "A refund or a chargeback has replaced the dispute.",
        }[dispute.outcome or DisputeOutcome.RESOLVED]
    if dispute.status in {DisputeStatus.WON, DisputeStatus.LOST}:
        if dispute.final or dispute.appeal_by is None:
            return "This decision is final. The money moves in a moment."
        return f"The side that lost may appeal until {when(dispute.appeal_by)}. Then the money moves."
    if dispute.status is DisputeStatus.OPEN:
        judge = "The card network decides" if chargeback else "Your provider decides"
        asked = f"Answer by {when(dispute.respond_by)}: accept the dispute, or send evidence. {judge}. If you do not answer, you lose."
        return f"The time to answer is over. {judge}." if dispute.is_late(now) else asked
    if dispute.status is DisputeStatus.APPEALED:
        return "Your provider looks at everything once more. That decision is final."
    return (
        "The card network reads both sides and decides."
        if chargeback
        else "Your provider reads both sides and decides."
    )


def can_appeal(dispute: Dispute, now: datetime) -> bool:
    """Return whether the merchant may appeal now."""
    try:
        require_appeal(dispute, DisputeParty.MERCHANT, now)
    except Refused:
        return False
    return True


def payment_rows(payment: int | None) -> list[tuple[str, str]]:
    """Return the row that says which payment a chargeback took back. A consumer's dispute has none."""
    return [] if payment is None else [("Taken back", f"Payment {payment} of the plan")]


def facts_of(dispute: Dispute, currency: str, payment: int | None) -> list[tuple[str, str]]:
    """Return the facts as pairs of label and value. `payment` is the number of the payment that a chargeback took back."""
    kind = (
        "Chargeback by the card network"
        if dispute.kind is DisputeKind.CHARGEBACK
        else "Dispute by the consumer"
    )
    rows = [
        ("Kind", kind),
        *payment_rows(payment),
        ("Reason", REASONS[dispute.reason]),
        ("Amount", money.shown(dispute.amount, currency)),
        ("Withheld now", money.shown(dispute.withheld, currency)),
        ("Opened", when(dispute.opened_at)),
    ]
    if dispute.status is DisputeStatus.OPEN:
        rows.append(("Answer by", when(dispute.respond_by)))
    return rows


def statement_rows(dispute: Dispute, written: Sequence[Statement]) -> list[PageContext]:
    """Return the statements of each side, with links to all files."""
    address = f"{DISPUTES}/{dispute.dispute_id}/files"
    return [
        {
            "who": PARTIES[each.party],
            "at": when(each.at),
            "paragraphs": (each.text or "").splitlines(),
            "files": [
                {
                    "name": file.name,
                    "size": size_words(file.size),
                    "address": f"{address}/{each.evidence_id}/{file.number}",
                }
                for file in each.files
            ],
        }
        for each in written
    ]


def size_words(size: int) -> str:
    """Write the size of a file, given in bytes."""
    return f"{size / 2**20:.1f} MB" if size >= 2**20 else f"{max(1, size // 1024)} KB"
