"""The extra members in the body of an event about a dispute or a return notice. They have the same bytes every time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from cuota.core.dispute.dispute import Dispute, DisputeStatus
from cuota.core.dispute.return_notice import ReturnNotice
from cuota.core.instant import timestamp
from cuota.core.money import decimal_from
from cuota.core.order.movement import Movement, MovementKind
from cuota.db.dispute.opened_chargebacks import OpenedChargeback
from cuota.db.webhook.happened import Happened

_STATUS_AFTER = {
    "dispute.opened": DisputeStatus.OPEN,
    "dispute.submitted": DisputeStatus.UNDER_REVIEW,
    "dispute.won": DisputeStatus.WON,
    "dispute.lost": DisputeStatus.LOST,
    "dispute.appealed": DisputeStatus.APPEALED,
    "dispute.closed": DisputeStatus.CLOSED,
}


def dispute_members(
    events: Sequence[Happened],
    disputes: Sequence[Dispute],
    chargebacks: Mapping[UUID, OpenedChargeback],
    movements: Sequence[Movement],
) -> dict[str, object]:
    """Return `dispute` for an event about a dispute, and `disputeId` for the refund that a lost dispute made.

    `events` are the order's events up to this one, `movements` the movements, `chargebacks` the order's chargebacks by the id of
    the dispute.
    """
    happened = events[-1]
    if happened.type.startswith("dispute."):
        found = next(each for each in disputes if str(each.dispute_id) == happened.reference)
        return {"dispute": _dispute(found, chargebacks.get(found.dispute_id), events)}
    if happened.type == "refund.completed":
        by_movement = {each.movement_id: each.dispute_id for each in disputes if each.movement_id}
        ids: list[UUID] = [
            by_movement[moved.movement_id]
            for moved in movements
            if moved.kind is MovementKind.REFUND
            and moved.reference == happened.reference
            and moved.movement_id in by_movement
        ]
        return {"disputeId": ids[0]} if ids else {}
    return {}


def _dispute(
    dispute: Dispute, chargeback: OpenedChargeback | None, events: Sequence[Happened]
) -> dict[str, object]:
    shown: dict[str, object] = {
        "disputeId": dispute.dispute_id,
        "kind": dispute.kind,
        "reason": dispute.reason,
        "amount": decimal_from(dispute.amount),
        "status": _status(str(dispute.dispute_id), events),
        "respondBy": timestamp(dispute.respond_by),
    }
    if chargeback is not None:
        shown["payment"] = chargeback.payment
        if events[-1].type == "dispute.opened":
            shown["released"] = decimal_from(chargeback.released)
    if events[-1].type == "dispute.closed":
        shown["outcome"] = events[-1].message
    return shown


def _status(name: str, events: Sequence[Happened]) -> DisputeStatus:
    """Return the status right after the last of these events. Evidence for an appeal changes no status."""
    status = DisputeStatus.OPEN
    for event in events:
        if event.reference == name and event.type in _STATUS_AFTER:
            if event.type == "dispute.submitted" and status is DisputeStatus.APPEALED:
                continue
            status = _STATUS_AFTER[event.type]
    return status


def return_members(happened: Happened, returns: Sequence[ReturnNotice]) -> dict[str, object]:
    """Return `return` for an event about a return notice."""
    if happened.type != "return.noticed":
        return {}
    notice = next(each for each in returns if str(each.return_id) == happened.reference)
    return {
        "return": {
            "returnId": notice.return_id,
            "carrier": notice.carrier,
            "trackingNumber": notice.tracking,
            "noticedAt": timestamp(notice.noticed_at),
            "holdUntil": timestamp(notice.hold_until),
        }
    }
