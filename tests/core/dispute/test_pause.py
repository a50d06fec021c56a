"""The days of payments after a dispute."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from cuota.core.dispute.pause import pause, resume
from cuota.core.installment import Installment, schedule
from cuota.core.plan.collection import RETRIES
from cuota.core.plan.payday import Days

OPENED = datetime(2026, 3, 10, 12, tzinfo=UTC)
CLOSED = OPENED + timedelta(days=20)
TOMORROW = Days(UTC).charge_at(CLOSED.date() + timedelta(days=1))


def second(item: Installment) -> list[Installment]:
    """Return a plan whose second payment is this one, and the others are paid or free."""
    rest = [replace(each, amount=0, fee=0) for each in schedule(10000, 0, date(2026, 2, 1))]
    return [rest[0], item, *rest[2:]]


def failed(failures: int, due_on: date) -> Installment:
    return Installment(2, due_on, 2500, 0, charge_at=OPENED + timedelta(days=1), failures=failures)


def after(item: Installment) -> Installment:
    plan = second(item)
    paused = {each.number: each for each in (*plan, *pause(plan))}
    (moved,) = resume(tuple(paused.values()), UTC, OPENED, CLOSED)
    return moved


def test_a_payment_that_had_failed_is_retried_tomorrow() -> None:
    moved = after(failed(1, date(2026, 3, 9)))
    assert (moved.charge_at, moved.due_on) == (TOMORROW, date(2026, 3, 29))


def test_a_payment_that_had_used_up_its_retries_is_not_charged_again() -> None:
    moved = after(failed(len(RETRIES) + 1, date(2026, 3, 9)))
    assert (moved.charge_at, moved.due_on) == (None, date(2026, 3, 29))


def test_a_payment_that_an_earlier_release_marked_as_failed_is_not_charged_before_its_day() -> None:
    moved = after(failed(1, date(2026, 4, 20)))
    assert moved.charge_at == Days(UTC).charge_at(date(2026, 4, 20))
