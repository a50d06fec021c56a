"""A merchant's balance, and the expected amount and time of the next payout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from cuota.core import money
from cuota.core.payout.calendar import next_business_day
from cuota.core.payout.cutoff import BANK_ZONE, next_paying_cutoff, pays_at
from cuota.core.payout.terms import WHOLE, SettlementTerms


@dataclass(frozen=True, slots=True)
class ExpectedPayout:
    """The payout that the next closing would create, as of now. The amount is in cents."""

    closes_at: datetime
    arrival_date: date
    amount: int


@dataclass(frozen=True, slots=True)
class Balance:
    """A merchant's money, in cents.

    `available` is the amount that the last closing left open, and `pending` the amount since then; both may be
    negative. `reserved` is held as a reserve. `debt` is the missing amount if the sum of available and pending is
    negative, otherwise 0. `next_payout` is None if nothing would be paid.
    """

    available: int
    pending: int
    reserved: int
    debt: int
    next_payout: ExpectedPayout | None


@dataclass(frozen=True, slots=True)
class OpenMoney:
    """The open amounts for the next payout, in cents. `moved` is the part of `net` from captures minus refunds.

    `cutoff` is the next daily cutoff, or None while nothing is open. `held` are the reserves that are not released yet,
    each with its time. `payable` is true if payouts are not paused and a bank account is in force.
    """

    net: int
    moved: int
    cutoff: datetime | None
    held: Sequence[tuple[datetime, int]]
    payable: bool


def next_payout(money_open: OpenMoney, terms: SettlementTerms, now: datetime) -> ExpectedPayout | None:
    """Return the payout that the next closing would create, or None."""
    cutoff = money_open.cutoff
    if cutoff is None or not pays_at(terms, cutoff):
        cutoff = next_paying_cutoff(terms, cutoff or now)
    released = sum(amount for release_at, amount in money_open.held if release_at <= cutoff)
    kept = money.share(max(money_open.moved, 0), terms.reserve, WHOLE)
    amount = money_open.net + released - kept
    if not money_open.payable or amount <= 0 or amount < terms.minimum:
        return None
    return ExpectedPayout(cutoff, next_business_day(cutoff.astimezone(BANK_ZONE).date()), amount)
