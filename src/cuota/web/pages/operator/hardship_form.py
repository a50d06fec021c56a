"""Reads an operator's request for a consumer in hardship, and shows a plan before and after the change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from cuota.core import money
from cuota.core.installment import Installment
from cuota.core.plan.change import ChangeKind
from cuota.core.plan.hardship import (
    CannotChange,
    HardshipRequest,
    MoveDates,
    PausePlan,
    SmallerPayments,
    WaiveFee,
    changeable,
)
from cuota.web.pages.render import PageContext

_LONGEST_NUMBER = 4
_LONGEST_VALUE = 40


def read_request(given: Mapping[str, str], plan: Sequence[Installment]) -> HardshipRequest | None:
    """Return the request in the fields of a form, or None if there is no request.

    Raises CannotChange for a field that cannot be read.
    """
    kind = given.get("kind", "")
    if kind == ChangeKind.PAUSED:
        return PausePlan(_whole(given, "pause", "Enter a number of days, such as 14."))
    if kind == ChangeKind.DATES_MOVED:
        return MoveDates(_moved(given, plan))
    if kind == ChangeKind.SMALLER_PAYMENTS:
        payments = _whole(given, "payments", "Enter a number of payments, such as 6.")
        every = _whole(given, "every", "Enter a number of days, such as 14.")
        return SmallerPayments(payments, every, _day(given, "first"))
    if kind == ChangeKind.FEE_WAIVED:
        return WaiveFee(_cents(given, "waive"))
    return None


def fields_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of the requested kind of change, so that the next form can send them again."""
    names = {
        ChangeKind.PAUSED: ("pause",),
        ChangeKind.DATES_MOVED: tuple(name for name in given if name.startswith("day_")),
        ChangeKind.SMALLER_PAYMENTS: ("payments", "every", "first"),
        ChangeKind.FEE_WAIVED: ("waive",),
    }
    kind = given.get("kind", "")
    chosen = names[ChangeKind(kind)] if kind in set(ChangeKind) else ()
    return {"kind": kind, **{name: given.get(name, "")[:_LONGEST_VALUE] for name in chosen}}


def _whole(given: Mapping[str, str], name: str, wrong: str) -> int:
    text = given.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
        raise CannotChange(wrong, name)
    return int(text)


def _day(given: Mapping[str, str], name: str) -> date:
    try:
        return date.fromisoformat(given.get(name, "").strip())
    except ValueError:
        raise CannotChange("Enter a day, such as 2026-12-05.", name) from None


def _moved(given: Mapping[str, str], plan: Sequence[Installment]) -> dict[int, date]:
    """Return the days that differ from those of the plan."""
    due = {item.number: item.due_on for item in changeable(plan)}
    days = {number: _day(given, f"day_{number}") for number in due if given.get(f"day_{number}")}
    return {number: chosen for number, chosen in days.items() if chosen != due[number]}


def _cents(given: Mapping[str, str], name: str) -> int:
    try:
        return money.typed_cents(given.get(name, ""))
    except money.BadAmount:
        raise CannotChange("Enter an amount such as 5.00.", name) from None


def defaults(plan: Sequence[Installment], fee: int) -> PageContext:
    """Return the first values of the fields."""
    left = changeable(plan)
    return {
        "pause": "14",
        "payments": str(2 * len(left)),
        "every": "14",
        "first": left[0].due_on.isoformat() if left else "",
        "waive": money.text_of(fee),
        **{f"day_{item.number}": item.due_on.isoformat() for item in left},
    }
