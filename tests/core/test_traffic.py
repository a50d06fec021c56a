"""The figures of requests: within which time they were answered, and the last hour of all processes together."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from cuota.core.operator.hour import MINUTE, Report, last_hour
from cuota.core.operator.traffic import BOUNDS, BUCKETS, NOTHING, Traffic, TrafficTotals

NOW = datetime(2026, 11, 24, 12, 30, 15, tzinfo=UTC)


def answered(*seconds: float, errors: int = 0) -> Traffic:
    """Return the traffic of answers that took so long."""
    buckets = [0] * BUCKETS
    for each in seconds:
        buckets[next((at for at, bound in enumerate(BOUNDS) if each <= bound), BUCKETS - 1)] += 1
    return Traffic(len(seconds), errors, tuple(buckets))


@pytest.mark.parametrize(
    ("traffic", "share", "seconds"),
    [
        (Traffic(), 0.5, None),
        (answered(0.0003), 0.99, 0.001),
        (answered(*[0.004] * 95, *[0.3] * 5), 0.95, 0.005),
        (answered(*[0.004] * 94, *[0.3] * 6), 0.95, 0.5),
        (answered(*[0.004] * 99, 7.0), 0.99, 0.005),
        (answered(*[0.004] * 98, 7.0, 8.0), 0.99, math.inf),
        (answered(0.004, 0.3), 0.5, 0.005),
    ],
)
def test_a_share_of_the_answers_came_within_the_upper_end_of_a_bucket(
    traffic: Traffic, share: float, seconds: float | None
) -> None:
    assert traffic.within(share) == seconds


def test_what_came_later_is_the_difference_and_quiet_groups_are_left_out() -> None:
    before = TrafficTotals({"API": answered(0.1, 0.2), "Pages": answered(0.1)}, 3)
    after = TrafficTotals({"API": answered(0.1, 0.2, 0.01), "Pages": answered(0.1), "New": answered(1.0)}, 5)
    assert after.since(before) == TrafficTotals({"API": answered(0.01), "New": answered(1.0)}, 2)
    assert before.since(NOTHING) == before


def report(
    at: datetime, traffic: Traffic, span: float = 60.0, group: str = "API", refused: int = 0
) -> Report:
    return Report(at, span, {group: traffic}, refused)


def test_the_reports_of_several_processes_are_added_up_by_minute() -> None:
    """Each process writes a few seconds after the end of the minute that it counted."""
    end = NOW.replace(second=0)
    reports = [
        report(end + timedelta(seconds=offset) - MINUTE * back, answered(*[0.01] * count))
        for back, count in ((0, 5), (1, 7))
        for offset in (0.3, 2, 4.9)
    ]
    hour = last_hour(reports, NOW, without="")
    assert [at for at, _ in hour.minutes] == [end - MINUTE * back for back in range(60, 0, -1)]
    assert [traffic.answers for _, traffic in hour.minutes[-3:]] == [0, 21, 15]
    assert hour.recent["API"].answers == 36


def test_the_minute_that_has_not_ended_and_old_ones_are_left_out() -> None:
    end = NOW.replace(second=0)
    for at in (NOW, end - MINUTE * 62):
        assert not any(
            traffic.answers
            for _, traffic in last_hour([report(at, answered(1.0), span=10)], NOW, without="").minutes
        )


def test_health_checks_are_left_out_of_the_chart_and_not_of_the_table() -> None:
    hour = last_hour([report(NOW.replace(second=0), answered(0.001), group="Health")], NOW, without="Health")
    assert not any(traffic.answers for _, traffic in hour.minutes)
    assert hour.recent["Health"].answers == 1


def test_a_service_that_began_two_minutes_ago_is_not_measured_over_five() -> None:
    end = NOW.replace(second=0)
    reports = [report(end - MINUTE * back, answered(*[0.01] * 60), refused=2) for back in (0, 1)]
    hour = last_hour(reports, NOW, without="")
    assert hour.seconds == 120
    assert hour.recent["API"].answers / hour.seconds == 1.0
    assert hour.refused == 4


def test_without_a_report_there_is_nothing_to_divide_by() -> None:
    hour = last_hour([], NOW, without="")
    assert (hour.seconds, hour.recent, len(hour.minutes)) == (0, {}, 60)
