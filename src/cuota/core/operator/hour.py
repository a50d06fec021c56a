"""The traffic of all processes in the last hour, added up from their reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cuota.core.operator.traffic import Traffic

MINUTE = timedelta(minutes=1)
MINUTES = 60
RECENT = 5
# A process writes its report within this time after the end of a minute. Until then, the minute is not complete, and the page
# does not show it.
LATE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Report:
    """The counts of one process in the `span` seconds before `at`."""

    at: datetime
    span: float
    groups: dict[str, Traffic]
    refused: int


@dataclass(frozen=True, slots=True)
class Hour:
    """The traffic of the last hour.

    `minutes` has the beginning of each full minute with its traffic, the oldest first. `recent` is the traffic of the last five
    minutes by group of routes, over the `seconds` seconds from the first of these reports to the last. `refused` counts the
    requests in these five minutes that were refused because of overload.
    """

    minutes: list[tuple[datetime, Traffic]]
    recent: dict[str, Traffic]
    refused: int
    seconds: float


def last_hour(reports: Iterable[Report], now: datetime, *, without: str) -> Hour:
    """Add up the reports. `minutes` leaves out the group `without`, which is the health checks.

    A report counts for the minute that contains the middle of its span, because processes write a few seconds after the end of
    a minute.
    """
    end = (now - LATE).replace(second=0, microsecond=0)
    every = {end - MINUTE * back: Traffic() for back in range(MINUTES, 0, -1)}
    recent: dict[str, Traffic] = {}
    recent_from, refused = end - MINUTE * RECENT, 0
    began, ended = end, recent_from
    for report in reports:
        span = timedelta(seconds=report.span)
        minute = (report.at - span / 2).replace(second=0, microsecond=0)
        if minute not in every:
            continue
        for name, traffic in report.groups.items():
            if name != without:
                every[minute] = every[minute].plus(traffic)
            if minute >= recent_from:
                recent[name] = recent.get(name, Traffic()).plus(traffic)
        if minute >= recent_from:
            refused += report.refused
            began, ended = min(began, report.at - span), max(ended, report.at)
    return Hour(list(every.items()), recent, refused, max(0.0, (ended - began).total_seconds()))
