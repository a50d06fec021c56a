"""The sections about requests on the system's page: rates and latencies, a chart of the last hour, and the processes."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from cuota.core.operator.hour import MINUTES, Hour, Report, last_hour
from cuota.core.operator.traffic import Traffic
from cuota.db.operator import minutes
from cuota.db.operator.minutes import Minute
from cuota.flows.context import Context, utc_now
from cuota.web.pages.desk.chart import HEIGHT, WIDTH, bars
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.parts import cell, section, state, table
from cuota.web.pages.render import PageContext
from cuota.web.server.route import HEALTH

# Figures above these limits are marked: more than one percent of server errors, or 95% not answered within half a second.
MANY_ERRORS = 0.01
SLOW_SECONDS = 0.5
# A process writes once a minute. A process that is silent for longer has stopped, hangs, or cannot reach the database.
SILENT = timedelta(seconds=90)
# Stopped processes are shown for this long.
GONE_AFTER = timedelta(minutes=10)
# The most rows of one hour that are read: those of 150 processes.
MOST_ROWS = 9000
NOBODY_YET = (
    "No process has reported yet. Each reports within five seconds of its start, and then once a minute."
)


async def traffic_sections(context: Context, alive: int) -> list[PageContext]:
    """Return the sections. `alive` is the number of processes that hold the lock of a running process."""
    now = utc_now()
    found = await minutes.since(context.pool, now - timedelta(minutes=MINUTES + 2), MOST_ROWS)
    hour = last_hour(
        (Report(each.at, each.span, each.counted.groups, each.counted.refused) for each in found),
        now,
        without=HEALTH,
    )
    return [_rates(hour, found, now), _chart(hour), _processes(found, now, alive)]


def _rates(hour: Hour, found: list[Minute], now: datetime) -> PageContext:
    columns = [
        cell("Requests to"), cell("State"), cell("A second", amount=True), cell("Server errors", amount=True, wide=True),
        cell("Half within", amount=True, wide=True), cell("95% within", amount=True), cell("99% within", amount=True, wide=True),
    ]  # fmt: skip
    rows = [
        _rate(name, traffic, hour.seconds)
        for name, traffic in sorted(hour.recent.items(), key=lambda each: -each[1].answers)
    ]
    shown = table(
        "Requests in the last five minutes", columns, rows, NOBODY_YET if not found else "No requests."
    )
    if found:
        age = max(0, int((now - max(each.at for each in found)).total_seconds()))
        reporting = len({each.process.process_id for each in found if now - each.at <= SILENT})
        summed = (
            f"Added up from {reporting} {'process' if reporting == 1 else 'processes'}; the newest report is {age} seconds old."
            " Each process counts its own answers and reports once a minute."
        )
        texts = [summed]
        if hour.refused:
            texts.append(f"{hour.refused:,} more requests were refused at once because of overload (503).")
        shown["texts"] = texts
    return shown


def _rate(name: str, traffic: Traffic, seconds: float) -> list[PageContext]:
    slowest = traffic.within(0.95)
    if traffic.error_share > MANY_ERRORS:
        judged = state("Errors", "bad")
    elif slowest is not None and slowest > SLOW_SECONDS:
        judged = state("Slow", "wait")
    else:
        judged = state("Fine", "done")
    return [
        cell(name),
        judged,
        cell(f"{traffic.answers / seconds:,.2f}" if seconds else "none", amount=True),
        cell(f"{100 * traffic.error_share:.2f}%", amount=True, wide=True),
        cell(shown_seconds(traffic.within(0.5)), amount=True, wide=True),
        cell(shown_seconds(slowest), amount=True),
        cell(shown_seconds(traffic.within(0.99)), amount=True, wide=True),
    ]


def shown_seconds(seconds: float | None) -> str:
    """Format the upper end of a bucket: `25 ms`, `2.5 s`."""
    if seconds is None:
        return "none"
    if math.isinf(seconds):
        return "over 5 s"
    return f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"


def _chart(hour: Hour) -> PageContext:
    counts = [traffic.answers for _, traffic in hour.minutes]
    slow = [_milliseconds(traffic.within(0.95)) for _, traffic in hour.minutes]
    first, last = (when(hour.minutes[at][0]) for at in (0, -1))
    shown = section("Requests in the last hour")
    if not any(counts):
        shown["texts"] = ["No requests in the last hour, except health checks."]
        return shown
    most, busiest = max(zip(counts, (at for at, _ in hour.minutes), strict=True))
    worst = max(slow)
    shown["charts"] = [
        _bars("Requests a minute", counts, f"At most {most:,} requests in one minute, at {when(busiest)}.", first, last),
        _bars(
            "Time within which 95% of them were answered", slow,
            f"At worst {shown_seconds(worst / 1000 if worst <= 5000 else math.inf)}.", first, last,
        ),
    ]  # fmt: skip
    shown["texts"] = [f"All groups except health checks, from {first} to {last}."]
    shown["behind"] = {
        "summary": "The numbers of each minute",
        "columns": [
            cell("Minute"),
            cell("Requests", amount=True),
            cell("Server errors", amount=True),
            cell("95% within", amount=True),
        ],
        "rows": [
            [
                cell(when(at)),
                cell(f"{traffic.answers:,}", amount=True),
                cell(f"{traffic.errors:,}", amount=True),
                cell(shown_seconds(traffic.within(0.95)), amount=True),
            ]
            for at, traffic in reversed(hour.minutes)
        ],
    }
    return shown


def _milliseconds(seconds: float | None) -> int:
    """Return the height of a bar. A duration above the last limit is drawn twice as high as that limit."""
    if seconds is None:
        return 0
    return 10_000 if math.isinf(seconds) else math.ceil(seconds * 1000)


def _bars(title: str, values: list[int], words: str, first: str, last: str) -> PageContext:
    return {
        "title": title,
        "bars": bars(values),
        "width": WIDTH,
        "height": HEIGHT,
        "words": words,
        "first": first,
        "last": last,
    }


def _processes(found: list[Minute], now: datetime, alive: int) -> PageContext:
    newest = {each.process.process_id: each for each in found}
    shown = [each for each in newest.values() if now - each.at <= GONE_AFTER]
    columns = [
        cell("Process"), cell("State"), cell("Started", wide=True), cell("Release", wide=True), cell("Memory", amount=True, wide=True),
        cell("Last report", amount=True),
    ]  # fmt: skip
    rows = [
        _process(each, now)
        for each in sorted(shown, key=lambda each: (each.process.machine, each.process.pid))
    ]
    made = table("Processes", columns, rows, NOBODY_YET)
    reporting = sum(now - each.at <= SILENT for each in shown)
    words = f"{alive} {'process holds' if alive == 1 else 'processes hold'} a lock in the database, and {reporting} reported in the last 90 seconds."
    if alive != reporting:
        words += " The numbers differ for a moment when a process starts or stops. If they stay different, look at the logs of the machine."
    made["texts"] = [words]
    return made


def _process(each: Minute, now: datetime) -> list[PageContext]:
    age = max(0, int((now - each.at).total_seconds()))
    memory = "unknown" if each.memory is None else f"{each.memory / 1e6:,.0f} MB"
    return [
        cell(each.process.machine, more=f"process {each.process.pid}"),
        state("Reports", "done") if now - each.at <= SILENT else state("Stopped or hangs", "off"),
        cell(when(each.process.started_at), wide=True),
        cell(each.process.version, wide=True),
        cell(memory, amount=True, wide=True),
        cell(f"{age} s ago", amount=True),
    ]
