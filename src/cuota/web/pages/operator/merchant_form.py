"""Reads the fields of the form about a merchant's limits and terms."""

from __future__ import annotations

from uuid import UUID

from cuota.core import money
from cuota.core.payout.percent import read_percent
from cuota.core.payout.terms import PayoutSchedule
from cuota.core.refusal import Refused
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.payout.change_terms import TermsChange
from cuota.web.ids import guid

MOST_FIXED = 100_000
MOST_RESERVE_DAYS = 365


def read_terms(form: dict[str, str]) -> TermsChange:
    """Return the changed terms: empty fields change nothing. Raises BadTeam."""

    def percent(name: str) -> int | None:
        points = read_percent(form.get(name, "")) if form.get(name) else None
        if form.get(name) and points is None:
            raise BadTeam("Enter a percentage such as 5.9.", name)
        return points

    days, payout = form.get("reserve_days", ""), form.get("payout", "")
    if days and not (days.isascii() and days.isdigit() and len(days) <= 3 and int(days) <= MOST_RESERVE_DAYS):
        raise BadTeam(f"Enter a number of days from 0 to {MOST_RESERVE_DAYS}.", "reserve_days")
    fixed = cents_of(form, "fixed") if form.get("fixed") else None
    if fixed is not None and not 0 <= fixed <= MOST_FIXED:
        raise BadTeam(f"Enter an amount from 0.00 to {money.text_of(MOST_FIXED)}.", "fixed")
    return TermsChange(
        percent=percent("percent"), fixed=fixed, reserve=percent("reserve"), reserve_days=int(days) if days else None,
        payout=PayoutSchedule(payout) if payout in set(PayoutSchedule) else None,
    )  # fmt: skip


def cents_of(form: dict[str, str], name: str) -> int:
    """Return the amount in a field, in cents. Raises BadTeam."""
    try:
        return money.typed_cents(form.get(name, ""))
    except money.BadAmount:
        raise BadTeam("Enter an amount such as 100.00.", name) from None


def once_of(form: dict[str, str]) -> UUID:
    """Return the id that the page gave its form, so that a second click books nothing. Raises BadTeam."""
    try:
        return guid(form.get("once", ""))
    except Refused:
        raise BadTeam("This form is too old. Open the page again. Nothing was changed.") from None
