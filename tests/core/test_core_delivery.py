"""When a webhook is tried again, and what an attempt means."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cuota.core.delivery import Attempt, next_at_once, next_try

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
