"""Which payouts a person must look at."""

from __future__ import annotations

from datetime import date

import pytest

from cuota.core.payout.late import WAITS_FOR_FILE, has_problem, is_unconfirmed, payment_days, problem_note
from cuota.core.payout.payout import PayoutStatus

FRIDAY, MONDAY, TUESDAY = date(2026, 11, 20), date(2026, 11, 23), date(2026, 11, 24)


@pytest.mark.parametrize(
    ("today", "late"),
    [
        (date(2026, 11, 27), False),  # Thanksgiving is no business day: Tuesday, Wednesday, Friday
        (date(2026, 11, 30), True),
    ],
)
def test_a_bank_that_confirms_within_three_business_days_is_late_after_them(today: date, late: bool) -> None:  # noqa: FBT001
    assert is_unconfirmed(PayoutStatus.SENT, MONDAY, payment_days(today, 3)) is late


def test_a_bank_that_confirms_at_once_is_late_on_the_next_day() -> None:
    assert not is_unconfirmed(PayoutStatus.SENT, MONDAY, payment_days(MONDAY, 0))
    assert is_unconfirmed(PayoutStatus.SENT, MONDAY, payment_days(TUESDAY, 0))


def test_a_payment_that_waits_for_a_file_is_a_problem_only_after_its_day() -> None:
    assert not has_problem(WAITS_FOR_FILE, MONDAY, payment_days(MONDAY, 0))
    assert has_problem(WAITS_FOR_FILE, FRIDAY, payment_days(MONDAY, 0))
    assert has_problem("the bank is closed", MONDAY, payment_days(MONDAY, 0))


def test_a_payment_that_waits_for_a_file_has_not_failed() -> None:
    days = payment_days(MONDAY, 0)
    assert problem_note(WAITS_FOR_FILE, 13, MONDAY, days) == "waits for the next bank file (cuota bank make)"
    assert (
        problem_note("the bank is closed", 2, MONDAY, days) == "2 tries, the last failed: the bank is closed"
    )
    assert problem_note(None, 1, MONDAY, days) == ""
