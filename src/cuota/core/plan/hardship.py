"""Hardship: the changes that the operator may make to an agreed plan, within a policy, if a consumer cannot pay as planned.

Each function returns the changed plan. A function changes only installments that are owed and not written off: `changeable`
returns them. Only a waived fee changes the sum of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from itertools import combinations

from cuota.core import money
from cuota.core.dates import day as shown_day
from cuota.core.expected_failure import ExpectedFailure
from cuota.core.installment import Installment, owed
from cuota.core.plan.change import ChangeKind, PlanChange
from cuota.core.plan.payday import Days

# The database allows no higher installment number (migration 0039).
MOST_INSTALLMENTS = 40
# In cents. Collecting a smaller payment costs more than the payment.
SMALLEST_PAYMENT = 100
# The fewest and the most days between two smaller payments.
BETWEEN = (7, 31)


class CannotChange(ExpectedFailure):
    """The plan cannot be changed in this way, and nothing was changed. `field` is the wrong part of the request, or empty."""

    def __init__(self, text: str, field: str = "") -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class HardshipPolicy:
    """The limits of all changes. No role may exceed them.

    `move_days` and `pause_days` apply to all changes of one plan together; `fee_a_year` (cents) applies to one consumer within
    365 days. `payments` is the highest number of payments that may replace the unpaid payments. For an overdue payment, days
    count from today.
    """

    move_days: int = 30
    pause_days: int = 60
    payments: int = 12
    fee_a_year: int = 5000


@dataclass(frozen=True, slots=True)
class MoveDates:
    """Move installments to later days, by number."""

    days: Mapping[int, date]


@dataclass(frozen=True, slots=True)
class PausePlan:
    """Charge nothing for some days from today. Every payment is due later by this number of days."""

    days: int


@dataclass(frozen=True, slots=True)
class SmallerPayments:
    """Replace the unpaid payments with `payments` equal payments: the first on the day `first`, the others every `every` days."""

    payments: int
    every: int
    first: date


@dataclass(frozen=True, slots=True)
class WaiveFee:
    """Waive a part of the unpaid fee for the plan, in cents. If `amount` is None, waive all of it."""

    amount: int | None = None


HardshipRequest = MoveDates | PausePlan | SmallerPayments | WaiveFee


@dataclass(frozen=True, slots=True)
class NewPlan:
    """The plan that a request would produce. `days` and `waived` are those of PlanChange."""

    kind: ChangeKind
    plan: tuple[Installment, ...]
    days: int = 0
    waived: int = 0


def changeable(plan: Sequence[Installment]) -> list[Installment]:
    """Return the installments that a change may affect: those that are owed and not written off."""
    return [item for item in owed(plan) if item.written_off_at is None]


def unpaid_fee(plan: Sequence[Installment]) -> int:
    """Return the part of the plan's fee that can be waived, in cents."""
    return sum(item.fee for item in changeable(plan))


def days_used(changes: Sequence[PlanChange], *kinds: ChangeKind) -> int:
    """Return the number of days that changes of these kinds have used."""
    return sum(each.days for each in changes if each.kind in kinds)


def new_plan(
    request: HardshipRequest,
    plan: Sequence[Installment],
    earlier: Sequence[PlanChange],
    policy: HardshipPolicy,
    zone: tzinfo,
    now: datetime,
) -> NewPlan:
    """Return the plan that a request would produce. `earlier` are the plan's changes so far. Raises CannotChange.

    The limit of waived fees is not checked here, because it applies to the consumer's plans at all merchants.
    """
    case = _Case(tuple(plan), earlier, policy, zone, now)
    if not case.left:
        raise CannotChange("This plan cannot be changed: every payment is paid, canceled or written off.")
    if isinstance(request, MoveDates):
        return _move(case, request)
    if isinstance(request, PausePlan):
        return _pause(case, request)
    if isinstance(request, SmallerPayments):
        return _smaller(case, request)
    return _waive(case, request)


@dataclass(frozen=True, slots=True)
class _Case:
    plan: tuple[Installment, ...]
    earlier: Sequence[PlanChange]
    policy: HardshipPolicy
    zone: tzinfo
    now: datetime

    @property
    def left(self) -> list[Installment]:
        return changeable(self.plan)

    @property
    def today(self) -> date:
        return self.now.astimezone(self.zone).date()

    @property
    def next_day(self) -> date:
        """The earliest due day. It may not be the first payment's, because a return notice may have moved that payment."""
        return min(item.due_on for item in self.left)

    def later(self, was: date, day: date) -> int:
        """The number of days by which a payment moves. Days that have already passed for an overdue payment do not count."""
        return (day - max(was, self.today)).days

    def on(self, item: Installment, day: date) -> Installment:
        """Return an installment that is due on this day. Its count of failed charges is reset."""
        days = Days(self.zone)
        at, remind_at = days.charge_at(day), days.remind_at(day, self.now)
        return replace(item, due_on=day, charge_at=at, remind_at=remind_at, failures=0)

    def with_these(self, changed: Sequence[Installment]) -> tuple[Installment, ...]:
        after = {item.number: item for item in (*self.plan, *changed)}
        return tuple(after[number] for number in sorted(after))


def _move(case: _Case, request: MoveDates) -> NewPlan:
    left = {item.number: item for item in case.left}
    if not request.days:
        raise CannotChange("Give at least one payment a later day.")
    for number, day in request.days.items():
        field = f"day_{number}"
        if all(item.number != number for item in case.plan):
            raise CannotChange(f"This plan has no payment {number}.", field)
        if number not in left:
            raise CannotChange(
                f"Payment {number} cannot be moved: it is not owed, or it is written off.", field
            )
        if day <= left[number].due_on:
            raise CannotChange(
                f"Payment {number} can only move to a day after {_named(left[number].due_on)}.", field
            )
        if day <= case.today:
            raise CannotChange(f"Payment {number} must move to a day after today.", field)
    changed = [case.on(left[number], day) for number, day in request.days.items()]
    after = case.with_these(changed)
    _require_order(case.left, changeable(after))
    later = {number: case.later(left[number].due_on, day) for number, day in request.days.items()}
    farthest = max(later, key=lambda number: later[number])
    _require_move(case, later[farthest], f"day_{farthest}")
    return NewPlan(ChangeKind.DATES_MOVED, after, days=later[farthest])


def _pause(case: _Case, request: PausePlan) -> NewPlan:
    if request.days < 1:
        raise CannotChange("A pause lasts at least one day.", "pause")
    used, most = days_used(case.earlier, ChangeKind.PAUSED), case.policy.pause_days
    _require_within(request.days, used, most, "A plan may pause for", "pause")
    # If a payment is already late, the first payment is due right after the pause. The intervals between the payments stay the
    # same.
    late = max(0, (case.today - case.next_day).days)
    later = timedelta(days=request.days + late)
    changed = [case.on(item, item.due_on + later) for item in case.left]
    after = case.with_these(changed)
    return NewPlan(ChangeKind.PAUSED, after, days=request.days)


def _smaller(case: _Case, request: SmallerPayments) -> NewPlan:
    left, most = case.left, case.policy.payments
    if not len(left) < request.payments <= most:
        raise CannotChange(
            f"Choose more than the {len(left)} payments that are left, and at most {most}.", "payments"
        )
    if not BETWEEN[0] <= request.every <= BETWEEN[1]:
        raise CannotChange(f"Choose {BETWEEN[0]} to {BETWEEN[1]} days between two payments.", "every")
    earliest = max(case.today + timedelta(days=1), case.next_day)
    if request.first < earliest:
        raise CannotChange(f"The first payment can be due on {_named(earliest)} at the earliest.", "first")
    later = case.later(case.next_day, request.first)
    _require_move(case, later, "first")
    amounts = money.split(sum(item.amount for item in left), request.payments)
    fees = money.split(sum(item.fee for item in left), request.payments)
    if amounts[-1] + fees[-1] < SMALLEST_PAYMENT:
        raise CannotChange("Each payment must be at least $1.00. Choose fewer payments.", "payments")
    # The new payments reuse the numbers of the unpaid installments, including canceled ones. Additional payments get the
    # numbers that follow.
    numbers = [item.number for item in case.plan if not item.paid and item.written_off_at is None]
    numbers = [*numbers, *range(len(case.plan) + 1, MOST_INSTALLMENTS + 1)][: request.payments]
    if len(numbers) < request.payments:
        raise CannotChange(
            f"A plan can have at most {MOST_INSTALLMENTS} payments in all. Choose fewer.", "payments"
        )
    days = (request.first + timedelta(days=request.every * index) for index in range(request.payments))
    parts = zip(numbers, days, amounts, fees, strict=True)
    changed = [case.on(Installment(number, day, amount, fee), day) for number, day, amount, fee in parts]
    _require_nothing_earlier(left, changed)
    return NewPlan(ChangeKind.SMALLER_PAYMENTS, case.with_these(changed), days=later)


def _require_nothing_earlier(left: Sequence[Installment], changed: Sequence[Installment]) -> None:
    """Check that the total due by each day does not exceed the total before the change."""
    due = 0
    for item in changed:
        due += item.total
        before = sum(each.total for each in left if each.due_on <= item.due_on)
        if due > before:
            raise CannotChange(
                f"By {_named(item.due_on)}, more would be due than now: {money.shown(due)} instead of {money.shown(before)}."
                " Choose more days between the payments, or more payments.",
                "every",
            )


def _waive(case: _Case, request: WaiveFee) -> NewPlan:
    most = unpaid_fee(case.plan)
    if not most:
        raise CannotChange("Nothing is left to pay of the fee for this plan.", "waive")
    amount = most if request.amount is None else request.amount
    if not 1 <= amount <= most:
        raise CannotChange(f"At most {money.shown(most)} of the fee is not paid yet.", "waive")
    changed, rest = [], amount
    for item in reversed(case.left):
        less = min(item.fee, rest)
        rest -= less
        if less:
            changed.append(replace(item, fee=item.fee - less))
    return NewPlan(ChangeKind.FEE_WAIVED, case.with_these(changed), waived=amount)


def _require_order(before: Sequence[Installment], after: Sequence[Installment]) -> None:
    """Check that payments which came one after the other still do. A return notice may have moved one behind its follower."""
    was = {item.number: item.due_on for item in before}
    for first, second in combinations(after, 2):
        if second.due_on <= first.due_on and was[second.number] > was[first.number]:
            raise CannotChange(
                f"Payment {second.number} must be due after payment {first.number}, which is due on {_named(first.due_on)}."
                f" Move payment {second.number} too.",
                f"day_{second.number}",
            )


def _require_move(case: _Case, days: int, field: str) -> None:
    """Check the limit on moves. A delay of the first of the smaller payments counts as a move, too."""
    used = days_used(case.earlier, ChangeKind.DATES_MOVED, ChangeKind.SMALLER_PAYMENTS)
    _require_within(days, used, case.policy.move_days, "A payment may move", field)


def _require_within(asked: int, used: int, most: int, what: str, field: str) -> None:
    if used + asked > most:
        before = f", and earlier changes have used {used}" if used else ""
        raise CannotChange(f"{what} at most {most} days in all{before}. This asks for {asked}.", field)


def _named(value: date) -> str:
    return shown_day(value, year=True)
