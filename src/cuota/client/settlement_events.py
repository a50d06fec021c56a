"""Computes the expected lines of a settlement from your stored events and your terms."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from cuota.client.settled import Terms
from cuota.client.settlement_cents import WHOLE, cents_of, share
from cuota.client.settlement_disputes import DisputeLine, Withheld
from cuota.client.told import Event

_LISTS = {"capture.completed": "captures", "refund.completed": "refunds"}
_ABOUT_MONEY = frozenset({*_LISTS, "dispute.opened", "dispute.closed"})


@dataclass(frozen=True)
class ExpectedLine:
    """A line that a payout must have because of an event. Amounts are cents."""

    type: str
    order_id: str
    reference: str
    merchant_reference: str
    gross: int
    fee: int
    event_id: str
    sequence: int

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the values that identify the line: its type, order and reference."""
        return self.type, self.order_id, self.reference


def in_force(versions: Iterable[Terms], at: datetime) -> Terms | None:
    """Return the version that is valid at this time. None means that there are no fees."""
    begun = [terms for terms in versions if terms.valid_from <= at]
    return max(begun, key=lambda terms: (terms.valid_from, terms.version), default=None)


def fee_of(terms: Terms | None, amount: int) -> tuple[int, int]:
    """Return the fee of a capture, and the part of the fee that a full refund returns, both in cents."""
    if terms is None:
        return 0, 0
    percentage, fixed = share(amount, cents_of(terms.percent), WHOLE), cents_of(terms.fixed)
    returnable = {"kept": 0, "pro_rata": percentage, "returned": percentage + fixed}
    return percentage + fixed, returnable[terms.refund_fee]


def raw_of(event: Event | Mapping[str, Any] | bytes | str) -> Mapping[str, Any]:
    """Return the body of an event as a mapping. The event may be a raw stored body."""
    if isinstance(event, Event):
        return event.raw
    if isinstance(event, bytes | str):
        body: Mapping[str, Any] = json.loads(event, parse_float=Decimal)
        return body
    return event


def expected_lines(events: Iterable[Mapping[str, Any]], versions: Sequence[Terms]) -> list[ExpectedLine]:
    """Return the lines that the events require. The events may be in any order, and a repeated event counts once."""
    once = {event["id"]: event for event in events if event["type"] in _ABOUT_MONEY}
    orders: dict[str, list[Mapping[str, Any]]] = {}
    for event in sorted(once.values(), key=lambda event: int(event["sequence"])):
        orders.setdefault(str(event["orderId"]), []).append(event)
    found: list[ExpectedLine] = []
    for of_order in orders.values():
        withheld = Withheld()
        for event in of_order:
            found += _of_event(event, versions, withheld)
    return found


def _of_event(event: Mapping[str, Any], versions: Sequence[Terms], withheld: Withheld) -> list[ExpectedLine]:
    def line(type_: str, reference: str, gross: int, fee: int = 0) -> ExpectedLine:
        return ExpectedLine(
            type_, str(event["orderId"]), reference, str(event.get("merchantReference") or ""), gross, fee, str(event["id"]),
            int(event["sequence"]),
        )  # fmt: skip

    disputed: list[DisputeLine] = []
    if event["type"] == "dispute.opened":
        disputed = withheld.opened(event)
    elif event["type"] == "dispute.closed":
        disputed = withheld.closed(event)
    else:
        own, amount = _own_movement(event), cents_of(event["amount"])
        reference = str(own["merchantReference"])
        if event["type"] == "capture.completed":
            fee, _ = fee_of(in_force(versions, _time(own)), amount)
            lines = [line("capture", reference, amount), line("fee", reference, 0, -fee)]
            return lines if fee else lines[:1]
        disputed = withheld.refunded(event, reference)
        if event.get("disputeId") is None:
            disputed = [("refund", reference, -amount), *disputed]
        if fee := _returned(event["order"], reference, versions):
            return [*(line(*each) for each in disputed), line("fee_returned", reference, 0, fee)]
    return [line(*each) for each in disputed]


def _own_movement(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the movement that the event reports, from the list in the event's order."""
    amount, movements = cents_of(event["amount"]), event["order"][_LISTS[event["type"]]]
    # The event contains the order right after the event, so the event's own movement is the last one.
    own: Mapping[str, Any] = next(
        (each for each in reversed(movements) if cents_of(each["amount"]) == amount), movements[-1]
    )
    return own


def _returned(order: Mapping[str, Any], reference: str, versions: Sequence[Terms]) -> int:
    """Return the fee that a refund returns. The order's captures and refunds are calculated again, by time."""
    moves = [(_time(each), 0, each) for each in order["captures"]]
    moves += [(_time(each), 1, each) for each in order["refunds"]]
    captured = refunded = returnable = returned = 0
    for at, is_refund, each in sorted(moves, key=lambda move: move[:2]):
        amount = cents_of(each["amount"])
        if not is_refund:
            captured += amount
            returnable += fee_of(in_force(versions, at), amount)[1]
            continue
        refunded += amount
        back = max(0, share(returnable, refunded, captured) - returned)
        returned += back
        if str(each["merchantReference"]) == reference:
            return back
    return 0


def _time(movement: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(movement.get("dateTime") or movement["refundedDateTime"])
