"""core/plan/hardship: what the policy allows for each kind of change, and what a change makes of the plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from cuota.core.installment import Installment, owed, total
from cuota.core.plan.change import ChangeKind, PlanChange, planned
from cuota.core.plan.hardship import (
    CannotChange,
    HardshipPolicy,
    HardshipRequest,
    MoveDates,
    NewPlan,
    PausePlan,
    SmallerPayments,
    WaiveFee,
    new_plan,
)
from support.core.collecting import ZONE, timed
from support.core.values import MOVEMENT, NOW, plan

POLICY = HardshipPolicy()
TODAY = NOW.astimezone(ZONE).date()
DAYS = [item.due_on for item in plan()]


def changed(
    request: HardshipRequest, agreed: list[Installment] | None = None, earlier: tuple[PlanChange, ...] = (), **policy: int
) -> NewPlan:  # fmt: skip
    return new_plan(request, agreed or timed(), earlier, replace(POLICY, **policy), ZONE, NOW)


def refused(
    request: HardshipRequest, agreed: list[Installment] | None = None, **more: object
) -> CannotChange:
    with pytest.raises(CannotChange) as refusal:
        changed(request, agreed, **more)  # type: ignore[arg-type]
    return refusal.value


def an_earlier(kind: ChangeKind, days: int) -> PlanChange:
    before = planned(plan())
    return PlanChange(1, MOVEMENT, kind, NOW, "Ana", days, 0, 3, before, before, b"", "", "", MOVEMENT)


def overdue(days: int, *numbers: int) -> list[Installment]:
    """A plan whose payments were due earlier by these days, and of which some have failed."""
    return [
        replace(item, due_on=item.due_on - timedelta(days=days), failures=2, charge_at=None, remind_at=None)
        if item.number in numbers
        else replace(item, due_on=item.due_on - timedelta(days=days))
        for item in timed()
    ]


def test_a_moved_payment_keeps_its_amount_and_gets_a_charge_and_a_reminder_on_its_new_day() -> None:
    new = changed(MoveDates({4: DAYS[3] + timedelta(days=10)}))
    moved = new.plan[3]
    assert (moved.due_on, moved.total) == (DAYS[3] + timedelta(days=10), 2500)
    assert moved.charge_at is not None
    assert moved.charge_at.date() == moved.due_on
    assert moved.remind_at is not None
    assert (new.kind, new.days, new.waived) == (ChangeKind.DATES_MOVED, 10, 0)
    assert new.plan[:3] == tuple(timed()[:3])


def test_an_overdue_payment_that_moves_is_not_overdue_any_more() -> None:
    late = overdue(30, 2)
    new = changed(
        MoveDates(
            {2: TODAY + timedelta(days=1), 3: TODAY + timedelta(days=15), 4: TODAY + timedelta(days=29)}
        ),
        late,
    )
    assert [item.state for item in new.plan] == ["paid", "scheduled", "scheduled", "scheduled"]


@pytest.mark.parametrize(
    ("days", "field", "words"),
    [
        ({}, "", "at least one"),
        ({1: DAYS[3]}, "day_1", "not owed"),
        ({5: DAYS[3]}, "day_5", "This plan has no payment 5."),
        ({2: DAYS[1]}, "day_2", "after"),
        ({2: DAYS[1] - timedelta(days=1)}, "day_2", "after"),
        ({2: DAYS[2]}, "day_3", "Move payment 3 too"),
        ({4: DAYS[3] + timedelta(days=31)}, "day_4", "at most 30 days"),
        ({4: date.max}, "day_4", "at most 30 days"),
    ],
)
def test_a_move_that_breaks_the_order_or_the_policy_is_refused(
    days: dict[int, date], field: str, words: str
) -> None:
    said = refused(MoveDates(days))
    assert said.field == field
    assert words in str(said)


def held(until: date) -> list[Installment]:
    """A plan whose second payment a return notice has moved to this day."""
    return [replace(item, due_on=until) if item.number == 2 else item for item in timed()]


@pytest.mark.parametrize("until", [DAYS[2], DAYS[2] + timedelta(days=2)])
def test_a_payment_can_move_alone_although_a_return_notice_moved_another_one_behind_its_follower(
    until: date,
) -> None:
    later = DAYS[3] + timedelta(days=10)
    new = changed(MoveDates({4: later}), held(until))
    assert [item.due_on for item in new.plan] == [DAYS[0], until, DAYS[2], later]


@pytest.mark.parametrize(("number", "field"), [(2, "day_4"), (3, "day_4")])
def test_no_payment_moves_behind_its_follower_while_a_return_notice_holds_another_one(
    number: int, field: str
) -> None:
    agreed = held(DAYS[2] + timedelta(days=2))
    assert refused(MoveDates({number: DAYS[3]}), agreed).field == field


def test_the_days_for_which_a_payment_is_overdue_do_not_count_as_moved() -> None:
    late = overdue(75, 2, 3, 4)
    days = {number: TODAY + timedelta(days=14 * number - 27) for number in (2, 3, 4)}
    assert changed(MoveDates(days), late).days == 29
    assert refused(MoveDates({**days, 4: TODAY + timedelta(days=31)}), late).field == "day_4"


def test_days_by_which_the_first_of_smaller_payments_is_later_count_as_moved() -> None:
    new = changed(SmallerPayments(6, 14, DAYS[1] + timedelta(days=20)))
    assert new.days == 20
    earlier = (an_earlier(ChangeKind.SMALLER_PAYMENTS, 20),)
    assert refused(MoveDates({4: DAYS[3] + timedelta(days=11)}), earlier=earlier).field == "day_4"
    assert refused(SmallerPayments(6, 14, DAYS[1] + timedelta(days=11)), earlier=earlier).field == "first"


def test_an_overdue_payment_cannot_move_to_today() -> None:
    assert "after today" in str(refused(MoveDates({2: TODAY}), overdue(30, 2)))


def test_the_days_of_all_moves_and_of_all_pauses_of_a_plan_count_together() -> None:
    moves = (an_earlier(ChangeKind.DATES_MOVED, 25),)
    assert changed(MoveDates({4: DAYS[3] + timedelta(days=5)}), earlier=moves).days == 5
    assert "have used 25" in str(refused(MoveDates({4: DAYS[3] + timedelta(days=6)}), earlier=moves))
    pauses = (an_earlier(ChangeKind.PAUSED, 50),)
    assert changed(PausePlan(10), earlier=pauses).days == 10
    assert refused(PausePlan(11), earlier=pauses).field == "pause"
    assert changed(PausePlan(60), earlier=moves).days == 60


def test_a_pause_makes_every_payment_later_by_its_days_and_leaves_no_payment_in_it() -> None:
    new = changed(PausePlan(14))
    assert [item.due_on for item in new.plan] == [DAYS[0], *(day + timedelta(days=14) for day in DAYS[1:])]


@pytest.mark.parametrize("late", [1, 5, 40])
def test_after_a_pause_of_a_late_plan_its_first_payment_comes_first_and_the_days_between_stay(
    late: int,
) -> None:
    agreed = overdue(14 + late, 2)
    new = changed(PausePlan(10), agreed)
    days = [item.due_on for item in new.plan[1:]]
    assert days == [TODAY + timedelta(days=10 + 14 * index) for index in range(3)]
    assert all(item.state == "scheduled" for item in new.plan[1:])


@pytest.mark.parametrize("days", [0, -1, 61])
def test_a_pause_has_at_least_a_day_and_at_most_those_of_the_policy(days: int) -> None:
    assert refused(PausePlan(days)).field == "pause"


def test_smaller_payments_use_the_unpaid_numbers_again_and_add_new_ones() -> None:
    new = changed(SmallerPayments(6, 14, DAYS[1]), timed(10_001))
    assert [item.number for item in new.plan] == [1, 2, 3, 4, 5, 6, 7]
    assert [item.total for item in new.plan[1:]] == [1250] * 6
    assert [item.due_on for item in new.plan[1:]] == [
        DAYS[1] + timedelta(days=14 * index) for index in range(6)
    ]
    assert total(new.plan) == 10_001


def test_a_payment_that_was_paid_early_keeps_its_place_among_smaller_payments() -> None:
    agreed = [
        replace(item, charge_id=MOVEMENT, charge_at=None, remind_at=None) if item.number == 3 else item
        for item in timed()
    ]
    new = changed(SmallerPayments(5, 28, DAYS[1]), agreed)
    assert [item.number for item in new.plan] == [1, 2, 3, 4, 5, 6, 7]
    assert [item.number for item in owed(new.plan)] == [2, 4, 5, 6, 7]
    assert [item.due_on for item in owed(new.plan)] == sorted(item.due_on for item in owed(new.plan))
    assert total(new.plan) == 10_000


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (SmallerPayments(3, 14, DAYS[1]), "payments"),
        (SmallerPayments(13, 14, DAYS[1]), "payments"),
        (SmallerPayments(6, 6, DAYS[1]), "every"),
        (SmallerPayments(6, 32, DAYS[1]), "every"),
        (SmallerPayments(4, 7, DAYS[1]), "every"),  # after seven days more would be due than before
        (SmallerPayments(6, 14, DAYS[1] - timedelta(days=1)), "first"),
        (SmallerPayments(6, 14, DAYS[1] + timedelta(days=31)), "first"),
        (SmallerPayments(6, 14, date.max - timedelta(days=400)), "first"),
    ],
)
def test_smaller_payments_outside_the_policy_are_refused(request_: SmallerPayments, field: str) -> None:
    assert refused(request_).field == field


def test_on_no_day_is_more_due_than_before_with_smaller_payments() -> None:
    new = changed(SmallerPayments(6, 7, DAYS[1]))
    for day in (item.due_on for item in new.plan):
        due = sum(item.total for item in new.plan if item.due_on <= day)
        assert due <= sum(item.total for item in timed() if item.due_on <= day)


def test_payments_below_a_dollar_are_refused() -> None:
    assert "$1.00" in str(refused(SmallerPayments(8, 28, DAYS[1]), timed(900)))


def test_a_waived_fee_leaves_the_last_payments_first() -> None:
    agreed = [replace(item, fee=100) for item in timed()]
    new = changed(WaiveFee(150), agreed)
    assert [item.fee for item in new.plan] == [100, 100, 50, 0]
    assert (new.waived, total(new.plan)) == (150, 10_000)
    assert [item.fee for item in changed(WaiveFee(), agreed).plan] == [100, 0, 0, 0]


@pytest.mark.parametrize("amount", [0, -1, 301])
def test_no_more_than_the_unpaid_fee_can_be_waived(amount: int) -> None:
    assert refused(WaiveFee(amount), [replace(item, fee=100) for item in timed()]).field == "waive"


def test_a_plan_without_a_fee_has_nothing_to_waive() -> None:
    assert refused(WaiveFee()).field == "waive"


def test_written_off_payments_are_left_alone() -> None:
    lost = [replace(item, written_off_at=NOW) if item.number == 2 else item for item in overdue(150, 2, 3)]
    new = changed(PausePlan(7), lost)
    assert new.plan[1] == lost[1]
    assert new.plan[2].due_on == TODAY + timedelta(days=7)
    divided = changed(SmallerPayments(4, 31, TODAY + timedelta(days=1)), lost)
    assert divided.plan[1] == lost[1]
    assert [item.total for item in divided.plan[2:]] == [1250] * 4
    everything = [
        replace(item, written_off_at=NOW) if item.number > 1 else item for item in overdue(200, 2, 3, 4)
    ]
    assert "This plan cannot be changed" in str(refused(PausePlan(7), everything))
