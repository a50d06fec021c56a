"""When a webhook is retried, and which answers acknowledge it."""

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
def test_retries_follow_the_schedule_with_up_to_ten_percent_of_jitter(tries: int, seconds: int) -> None:
    assert next_try(tries, FAILED, 0.5) == timedelta(seconds=seconds)
    assert next_try(tries, FAILED, 0.0) == timedelta(seconds=seconds) * 0.9
    assert next_try(tries, FAILED, 1.0) == timedelta(seconds=seconds) * 1.1


def test_a_delivery_is_parked_after_its_tenth_attempt_even_if_the_receiver_sends_retry_after() -> None:
    assert next_try(10, FAILED, 0.5) is None
    assert next_try(10, Attempt(503, 20, retry_after=60), 0.5) is None


@pytest.mark.parametrize(
    ("asked", "seconds"), [(5, 10), (700, 700), (DAY, DAY), (DAY + 1, DAY), (10**9, DAY)]
)
def test_retry_after_can_delay_the_next_attempt_by_up_to_a_day_but_not_make_it_earlier(
    asked: int, seconds: int
) -> None:
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
def test_only_a_2xx_answer_in_time_acknowledges_a_webhook(attempt: Attempt, acknowledged: bool) -> None:  # noqa: FBT001
    assert attempt.acknowledged is acknowledged


def test_a_fast_receiver_gets_several_deliveries_at_once_and_a_hanging_receiver_only_one() -> None:
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
def test_grouped_retries_stay_within_ten_percent_of_the_schedule(tries: int, at: datetime) -> None:
    wait = next_try_together(tries, Attempt(None, 1, TIMED_OUT), at)
    planned = timedelta(seconds=TIMETABLE[tries])
    assert wait is not None
    assert planned * 9 / 10 <= wait < planned * 11 / 10


def test_receivers_that_failed_shortly_after_one_another_are_retried_at_the_same_instant() -> None:
    hung, at = Attempt(None, 1, TIMED_OUT), datetime(2026, 11, 22, 9, 30, 1, tzinfo=UTC)
    again = set()
    for seconds in range(4):
        failed_at = at + timedelta(seconds=seconds)
        wait = next_try_together(4, hung, failed_at)
        assert wait is not None
        again.add(failed_at + wait)
    assert len(again) == 1


def test_grouped_retries_also_respect_retry_after_and_end_with_the_tenth_attempt() -> None:
    at = datetime(2026, 11, 22, tzinfo=UTC)
    assert next_try_together(1, Attempt(503, 1, None, b"", 7200), at) == timedelta(hours=2)
    assert next_try_together(len(TIMETABLE), Attempt(503, 1), at) is None
