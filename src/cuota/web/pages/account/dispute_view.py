"""Builds the values for the pages about disputes: texts that are ready to show."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cuota.core.dates import day
from cuota.core.dispute.answer import require_appeal
from cuota.core.dispute.dispute import (
    Dispute,
    DisputeKind,
    DisputeOutcome,
    DisputeParty,
    DisputeReason,
    DisputeStatus,
)
from cuota.core.dispute.return_notice import ReturnNotice
from cuota.core.installment import owed
from cuota.core.refusal import Refused
from cuota.db.plan.accounts import PlanDetail
from cuota.flows.dispute.ask_consumer import OrderDisputes
from cuota.flows.dispute.evidence import Statement
from cuota.web.pages.account.view import amount, day_there, when
from cuota.web.pages.account.visit import plan_path
from cuota.web.pages.render import PageContext

REASONS = {
    DisputeReason.NOT_RECEIVED: "It did not arrive",
    DisputeReason.NOT_AS_DESCRIBED: "It is not what was described",
    DisputeReason.NOT_REFUNDED: "I returned it and was not refunded",
    DisputeReason.WRONG_AMOUNT: "The amount is wrong",
    DisputeReason.NOT_MINE: "I did not make this order",
}
# A chargeback may have a reason that we do not know.
_REASON_WORDS = {**REASONS, DisputeReason.OTHER: "Your bank gave no reason"}
_PARTIES = {
    DisputeParty.CONSUMER: "You",
    DisputeParty.OPERATOR: "Our support",
    DisputeParty.NETWORK: "Your bank",
}


# The texts about what just happened on the page of a dispute. The query parameter `said` selects one by its key.
_TOLD = {
    "opened": "We have your dispute. Until the dispute is decided, we charge you nothing for this order.",
    "open": "A dispute about this order is open already. You can add to it here.",
    "added": "Your text and files were added.",
    "appealed": "We have your appeal.",
}


def told(said: str, detail: PlanDetail, dispute: Dispute) -> str | None:
    """Return the text about what just happened; None if `said` selects none, or one that is not true (any more).

    A reload, the browser's Back button or a link opens the address of the page again later.
    """
    if said == "withdrawn":
        withdrawn = dispute.outcome is DisputeOutcome.WITHDRAWN
        return f"You withdrew the dispute.{_continue(detail)}" if withdrawn else None
    true = {
        "opened": dispute.is_open,
        "open": dispute.is_open,
        "appealed": dispute.status is DisputeStatus.APPEALED,
    }
    return _TOLD.get(said) if true.get(said, True) else None


def _continue(detail: PlanDetail) -> str:
    """Return the sentence that payments continue, if something is left to pay."""
    return " Your payments continue." if owed(detail.shown.plan) else ""


def dispute_path(detail: PlanDetail, dispute: Dispute, said: str = "") -> str:
    """Return the path of a dispute's page."""
    path = f"{plan_path(detail)}/disputes/{dispute.dispute_id}"
    return f"{path}?said={said}" if said else path


def problems_of(detail: PlanDetail, found: OrderDisputes) -> PageContext:
    """Return the values for the part of the plan's page about problems with the order."""
    return {
        "disputes": [
            {
                "address": dispute_path(detail, each),
                "title": _REASON_WORDS[each.reason],
                "word": state_word(each),
                "next": next_step(detail, each),
                "amount": amount(detail.shown, each.amount),
            }
            for each in found.disputes
        ],
        "returns": [return_notice_words(detail, each) for each in found.returns],
        "can_dispute": found.disputable > 0,
        "can_return": found.can_return,
    }


def return_notice_words(detail: PlanDetail, notice: ReturnNotice) -> str:
    """Return the text about a return notice: the package, and the payment that waits for the refund."""
    zone = detail.shown.zone
    parcel = f" with {notice.carrier}, number {notice.tracking}" if notice.carrier else ""
    text = f"You sent it back{parcel}, on {day_there(notice.noticed_at, zone)}."
    if notice.ended_at is not None:
        return f"{text} The refund came on {day_there(notice.ended_at, zone)}."
    if any(change.changed_at >= notice.noticed_at for change in detail.changes):
        return f"{text} Your payments are due on the new dates that we agreed on with you."
    item = next((each for each in detail.shown.plan if each.number == notice.installment), None)
    if item is None or item.state != "scheduled" or detail.shown.order.paused_at is not None:
        return text
    waits = f"Your payment of {amount(detail.shown, item.total)} waits until {day(item.due_on)}"
    return f"{text} {waits}, or until the refund."


def state_word(dispute: Dispute) -> str:
    """Return the state in a few words, from the consumer's point of view."""
    if dispute.kind is DisputeKind.CHARGEBACK:
        return "With your bank" if dispute.is_open else "Closed"
    return {
        DisputeStatus.OPEN: "Waiting for the shop",
        DisputeStatus.UNDER_REVIEW: "Under review",
        DisputeStatus.WON: "Decided for the shop",
        DisputeStatus.LOST: "Decided for you",
        DisputeStatus.APPEALED: "Appealed",
        DisputeStatus.CLOSED: "Closed",
    }[dispute.status]


def next_step(detail: PlanDetail, dispute: Dispute) -> str:
    """Return the text about the next step and its deadline, or about the outcome of a closed dispute."""
    if dispute.kind is DisputeKind.CHARGEBACK:
        return _of_bank(detail, dispute)
    if dispute.status is DisputeStatus.CLOSED:
        return _ended(detail, dispute)
    if dispute.status in {DisputeStatus.WON, DisputeStatus.LOST}:
        return _decided(detail, dispute)
    shop, zone = detail.shown.merchant, detail.shown.zone
    who = "You have" if dispute.appealed_by is DisputeParty.CONSUMER else f"{shop} has"
    return {
        DisputeStatus.OPEN: f"{shop} has until {when(dispute.respond_by, zone)} to answer. If the shop does not answer, you win.",
        DisputeStatus.UNDER_REVIEW: f"{shop} has answered. We read both sides and decide.",
        DisputeStatus.APPEALED: f"{who} appealed. We look at everything once more; that decision is final.",
    }[dispute.status]


def _decided(detail: PlanDetail, dispute: Dispute) -> str:
    if dispute.final or dispute.appeal_by is None:
        return "This decision is final. It takes effect in a moment."
    until = when(dispute.appeal_by, detail.shown.zone)
    if dispute.status is DisputeStatus.WON:
        return f"You can appeal once, until {until}."
    back = amount(detail.shown, dispute.withheld)
    return f"{detail.shown.merchant} can appeal until {until}. After that, {back} is refunded."


def _of_bank(detail: PlanDetail, dispute: Dispute) -> str:
    taken = amount(detail.shown, dispute.amount)
    if dispute.is_open:
        return f"Your bank has taken {taken} back from us. Your bank decides."
    if dispute.outcome is DisputeOutcome.WON:
        return f"Your bank decided for {detail.shown.merchant}: the payment of {taken} stands."
    return f"Your bank decided for you: you keep the {taken}."


def _ended(detail: PlanDetail, dispute: Dispute) -> str:
    shop = detail.shown.merchant
    return {
        DisputeOutcome.WON: f"The dispute was decided for {shop}.{_continue(detail)}",
        DisputeOutcome.LOST: "The dispute was decided for you, and the amount was refunded.",
        DisputeOutcome.WITHDRAWN: f"You withdrew it.{_continue(detail)}",
        DisputeOutcome.RESOLVED: f"{shop} refunded the amount, or your bank took it back.",
    }[dispute.outcome or DisputeOutcome.RESOLVED]


def dispute_values(
    detail: PlanDetail, dispute: Dispute, written: Sequence[Statement], now: datetime
) -> PageContext:
    """Return the values for the page of one dispute."""
    ours = dispute.kind is DisputeKind.DISPUTE
    open_states = {DisputeStatus.OPEN, DisputeStatus.UNDER_REVIEW, DisputeStatus.APPEALED}
    return {
        "dispute_address": dispute_path(detail, dispute),
        "state_word": state_word(dispute),
        "state": "closed" if not dispute.is_open else "active",
        "next": next_step(detail, dispute),
        "rows": [
            ("Reason", _REASON_WORDS[dispute.reason]),
            ("Amount", amount(detail.shown, dispute.amount)),
            ("Opened on", day_there(dispute.opened_at, detail.shown.zone, year=True)),
        ],
        "paused": dispute.is_open,
        "left": bool(owed(detail.shown.plan)),
        "statements": [_statement(detail, dispute, each) for each in written],
        "can_add": ours and dispute.status in open_states,
        "can_appeal": _can_appeal(dispute, now),
        "can_withdraw": ours and dispute.is_open,
    }


def _statement(detail: PlanDetail, dispute: Dispute, each: Statement) -> PageContext:
    mine = each.party in {DisputeParty.CONSUMER, DisputeParty.OPERATOR}
    address = f"{dispute_path(detail, dispute)}/files"
    return {
        "who": _PARTIES.get(each.party, detail.shown.merchant),
        "at": when(each.at, detail.shown.zone),
        "paragraphs": (each.text or "").splitlines(),
        # The consumer can download the files of the consumer and of the operator, but not the shop's.
        "files": [
            {
                "name": file.name,
                "address": f"{address}/{each.evidence_id}/{file.number}" if mine else None,
                "size": _size(file.size),
            }
            for file in each.files
        ],
    }


def _size(size: int) -> str:
    return f"{size / 2**20:.1f} MB" if size >= 2**20 else f"{max(1, size // 1024)} KB"


def _can_appeal(dispute: Dispute, now: datetime) -> bool:
    try:
        require_appeal(dispute, DisputeParty.CONSUMER, now)
    except Refused:
        return False
    return True
