"""Installments: their due dates and amounts, and how a void or refund reduces them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from uuid import UUID

from cuota.core import money

COUNT = 4
DAYS_BETWEEN = 14
NOTHING: Mapping[UUID, int] = {}


@dataclass(frozen=True, slots=True)
class Installment:
    """One payment of a plan. `amount` and `fee` are the current values in cents, after voids and refunds.

    `returned` was refunded to the card, or will be. `charge_id` is set after a card has paid. `charge_at` is the time of the next
    charge, `remind_at` of the next reminder; `failures` counts failed scheduled charges. An unpaid installment without `charge_at`
    waits for another card, or for the end of a dispute. `written_off_at` is when it was written off (core/order/write_off.py);
    the consumer can still pay it.
    """

    number: int
    due_on: date
    amount: int
    fee: int
    charge_id: UUID | None = None
    returned: int = 0
    charge_at: datetime | None = None
    remind_at: datetime | None = None
    failures: int = 0
    written_off_at: datetime | None = None

    @property
    def paid(self) -> bool:
        """True if a card has paid the installment, even if it was refunded later."""
        return self.charge_id is not None

    @property
    def total(self) -> int:
        """The amount that the consumer pays, in cents: the part of the order and the part of the fee."""
        return self.amount + self.fee

    @property
    def state(self) -> str:
        """The state: `paid`, `scheduled`, `overdue` after a failed charge on its day, `written_off`, or `cancelled` if nothing is left to pay."""
        if self.paid:
            return "paid"
        if not self.total:
            return "cancelled"
        if self.written_off_at is not None:
            return "written_off"
        return "overdue" if self.failures else "scheduled"


def schedule(amount: int, fee: int, first_day: date) -> list[Installment]:
    """Return four installments, 14 days apart, from the day of the authorization. Pages, widget and ledger use this function."""
    days = [first_day + timedelta(days=DAYS_BETWEEN * index) for index in range(COUNT)]
    parts = zip(days, money.split(amount, COUNT), money.split(fee, COUNT), strict=True)
    return [Installment(index + 1, day, part, cost) for index, (day, part, cost) in enumerate(parts)]


@dataclass(frozen=True, slots=True)
class Cut:
    """The result of reducing a plan, in cents: the new plan, and where the money comes from.

    `unpaid` is no longer owed. `to_card` is refunded, and `by_charge` divides it among the charges. Fees are separate.
    """

    plan: tuple[Installment, ...]
    unpaid: int
    to_card: int
    fee_unpaid: int
    fee_to_card: int
    by_charge: dict[UUID, int]


def cut(plan: Sequence[Installment], amount: int, fee: int, taken_back: Mapping[UUID, int] = NOTHING) -> Cut:
    """Reduce a plan by `amount` and `fee`: first the unpaid installments, then the paid ones, each from the last to the first.

    `taken_back` has the cents that the cards' banks have taken back from each charge. That part of an installment is not
    reduced; `room` returns the largest possible reduction.
    """
    parts = {item.number: item for item in plan}
    latest_first = sorted(plan, key=lambda item: -item.number)
    unpaid = fee_unpaid = to_card = fee_to_card = 0
    by_charge: dict[UUID, int] = {}
    for item in (item for item in latest_first if not item.paid):
        less, less_fee = min(item.amount, amount - unpaid), min(item.fee, fee - fee_unpaid)
        unpaid += less
        fee_unpaid += less_fee
        parts[item.number] = replace(item, amount=item.amount - less, fee=item.fee - less_fee)
    for item in (item for item in latest_first if item.paid):
        free, free_fee = _free(item, taken_back)
        less = min(free, amount - unpaid - to_card)
        less_fee = min(free_fee, fee - fee_unpaid - fee_to_card)
        if not less + less_fee:
            continue
        to_card += less
        fee_to_card += less_fee
        assert item.charge_id is not None
        by_charge[item.charge_id] = by_charge.get(item.charge_id, 0) + less + less_fee
        returned = item.returned + less + less_fee
        parts[item.number] = replace(
            item, amount=item.amount - less, fee=item.fee - less_fee, returned=returned
        )
    assert unpaid + to_card == amount, "a plan always holds what its order still owes"
    assert fee_unpaid + fee_to_card == fee
    return Cut(tuple(parts[n] for n in sorted(parts)), unpaid, to_card, fee_unpaid, fee_to_card, by_charge)


def room(plan: Sequence[Installment], taken_back: Mapping[UUID, int]) -> tuple[int, int]:
    """Return the largest amounts by which `cut` can reduce a plan, in cents: of the order, and of the fee."""
    free = [_free(item, taken_back) for item in plan]
    return sum(amount for amount, _ in free), sum(fee for _, fee in free)


def _free(item: Installment, taken_back: Mapping[UUID, int]) -> tuple[int, int]:
    """Return the part of an installment that the card's bank has not taken back: of its amount, and of its fee."""
    taken = taken_back.get(item.charge_id, 0) if item.charge_id is not None else 0
    return max(0, item.amount - taken), max(0, item.fee - max(0, taken - item.amount))


def owed(plan: Sequence[Installment]) -> list[Installment]:
    """Return the installments that are still to be paid."""
    return [item for item in plan if not item.paid and item.total]


def charge_day(item: Installment, zone: tzinfo) -> date:
    """Return the day on which the card is charged, or the day on which the payment was due if its charge failed or is not scheduled.

    A payment that Cuota missed is charged later than it is due (core/plan/missed.py).
    """
    if item.failures or item.charge_at is None:
        return item.due_on
    return max(item.due_on, item.charge_at.astimezone(zone).date())


def upcoming(plan: Sequence[Installment], zone: tzinfo | None = None) -> list[Installment]:
    """Return the installments that are still to be paid, the earliest day first: of the charge, or without a `zone` the due day.

    After a return notice or an outage, an installment may be later than the one after it.
    """
    return sorted(owed(plan), key=lambda item: item.due_on if zone is None else charge_day(item, zone))


def lost(plan: Sequence[Installment]) -> int:
    """Return the unpaid amount of the written-off installments, in cents and including the fee."""
    return sum(item.total for item in owed(plan) if item.written_off_at is not None)


def next_at(plan: Sequence[Installment]) -> datetime | None:
    """Return when the next reminder or charge is due, or None if nothing is scheduled."""
    return min((at for item in owed(plan) for at in (item.charge_at, item.remind_at) if at), default=None)


def total(plan: Sequence[Installment]) -> int:
    """Return the sum of the plan without fees. It always equals the original amount minus voids and refunds."""
    return sum(item.amount for item in plan)


def plan_state(plan: Sequence[Installment]) -> str:
    """Return the state of the plan.

    It is `active` while an amount is owed and `overdue` after a failed charge. A paid plan is `completed`, or `cancelled`
    if everything was given back.
    """
    if waiting := owed(plan):
        return "overdue" if any(item.failures for item in waiting) else "active"
    return "completed" if any(item.total for item in plan) else "cancelled"
