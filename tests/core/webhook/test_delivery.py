"""When a webhook is tried again, and what an attempt means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.webhook.delivery import (
    TIMED_OUT,
    TIMETABLE,
    Attempt,
    next_at_once,
    next_try,
    next_try_together,
)
from support.properties.steady import STEADY

FAILED = Attempt(500, 20)
DAY = 86_400


@pytest.mark.parametrize(
    ("tries", "seconds"),
    [(1, 10), (2, 60), (3, 300), (4, 1800), (5, 7200), (6, 21_600), (7, 43_200), (8, DAY), (9, DAY)],
)
def test_tries_follow_the_timetable_with_a_tenth_of_jitter_either_way(tries: int, seconds: int) -> None:
    assert next_try(tries, FAILED, 0.5) == timedelta(seconds=seconds)
    assert next_try(tries, FAILED, 0.0) == timedelta(seconds=seconds) * 0.9
    assert next_try(tries, FAILED, 1.0) == timedelta(seconds=seconds) * 1.1


def test_after_the_tenth_try_it_is_parked_whatever_the_receiver_asks() -> None:
    assert next_try(10, FAILED, 0.5) is None
    assert next_try(10, Attempt(503, 20, retry_after=60), 0.5) is None


@pytest.mark.parametrize(
    ("asked", "seconds"), [(5, 10), (700, 700), (DAY, DAY), (DAY + 1, DAY), (10**9, DAY)]
)
def test_retry_after_delays_up_to_a_day_and_hastens_nothing(asked: int, seconds: int) -> None:
    assert next_try(1, Attempt(503, 20, retry_after=asked), 0.5) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("attempt", "acknowledged"),
    [
        (Attempt(200, 1), True),
        (Attempt(204, 1), True),
        (Attempt(299, 1), True),
        (Attempt(199, 1), False),
        (Attempt(302, 1), False),
        (Attempt(410, 1), False),
        (Attempt(500, 1), False),
        (Attempt(None, 1, "no answer in time"), False),
        (Attempt(200, 1, "too late"), False),
    ],
)
def test_a_2xx_in_time_acknowledges_and_nothing_else(attempt: Attempt, acknowledged: bool) -> None:  # noqa: FBT001
    assert attempt.acknowledged is acknowledged


def test_a_receiver_that_answers_promptly_has_more_at_once_and_one_that_hangs_has_one() -> None:
    assert next_at_once(4, Attempt(200, 30)) == 8
    assert next_at_once(16, Attempt(500, 30)) == 16
    assert next_at_once(16, Attempt(200, 4000)) == 8
    assert next_at_once(1, Attempt(200, 4000)) == 1
    assert next_at_once(16, Attempt(None, 10_000, "no answer in time")) == 1


@STEADY
@given(
    tries=st.integers(1, len(TIMETABLE) - 1),
    at=st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_tries_that_come_due_together_keep_within_a_tenth_of_the_timetable(tries: int, at: datetime) -> None:
    wait = next_try_together(tries, Attempt(None, 1, TIMED_OUT), at)
    planned = timedelta(seconds=TIMETABLE[tries])
    assert wait is not None
    assert planned * 9 / 10 <= wait < planned * 11 / 10


def test_receivers_that_failed_a_little_apart_are_tried_again_at_one_instant() -> None:
    hung, at = Attempt(None, 1, TIMED_OUT), datetime(2026, 11, 22, 9, 30, 1, tzinfo=UTC)
    again = set()
    for seconds in range(4):
        failed_at = at + timedelta(seconds=seconds)
        wait = next_try_together(4, hung, failed_at)
        assert wait is not None
        again.add(failed_at + wait)
    assert len(again) == 1


def test_together_or_not_retry_after_is_respected_and_the_tenth_try_is_the_last() -> None:
    at = datetime(2026, 11, 22, tzinfo=UTC)
    assert next_try_together(1, Attempt(503, 1, None, b"", 7200), at) == timedelta(hours=2)
    assert next_try_together(len(TIMETABLE), Attempt(503, 1), at) is None
