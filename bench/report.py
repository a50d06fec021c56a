"""Writes the results as a table for people and as JSON for programs."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil

HERE = Path(__file__).parent
PACKAGES = ("cuota", "asyncpg", "starlette", "uvicorn", "uvloop")

NOTES = [
    (
        "There is one row for each operation and limit. Every number is the median of three rounds. A round measures an "
        "operation with each number of clients and its limits within about fifteen seconds, so a ratio compares numbers "
        "of the same seconds; `rounds` has the lowest and the highest ratio. Each operation begins when the events of the "
        "previous one are published. The rows of 16, 64 and 128 clients are compared with the limits of 32. The other systems "
        "were measured once, after all rounds."
    ),
    (
        "`same SQL, no web`: pgbench runs the same prepared statements that the service sends (recorded from its flows), "
        "on the service's own database, in 16 sessions (in one session for one client). A capture is its read and its "
        "save; `capture, save alone` leaves out the read."
    ),
    (
        "`same web, no SQL`: the service's edge, framework, server settings and number of workers, with an endpoint that "
        "reads and validates the same body and answers with a constant of the same size; no authentication, no flow, no "
        "database."
    ),
    (
        "One process generates the load with a closed loop: each client sends its next request when it has its answer. "
        "The generator and PostgreSQL run on the same cores as the service, so with two cores, each of two workers "
        "shares its core with other processes."
    ),
    (
        "Each capture takes 25.00 of a different order of 100.00. Each refund returns 25.00 of a different, fully "
        "captured order. So no two requests change the same order. The orders are copies of two that went through the "
        "hosted checkout."
    ),
    (
        "`the usual way`: FastAPI and SQLAlchemy's ORM on the same PostgreSQL with 16 sessions (bench/peers/usual.py). It"
        " compares tokens as text, and has no plan, feed, double-entry ledger or webhooks. `localstripe`: an intent "
        "stands for an order, then a charge is read, and a charge is captured in part; it holds all data in memory and "
        "copies it to a file with each change. Both run as one process, with 32 clients."
    ),
    "Durable commits throughout: fsync, full_page_writes and synchronous_commit are on.",
    (
        "The CPU time of PostgreSQL includes its background writers. Round trips are committed transactions divided by "
        "requests, at one client; they include a few transactions a second of the worker itself."
    ),
]


@dataclass(frozen=True)
class ReportRow:
    """One operation compared with one limit. `ratio` is the median over the rounds of rps divided by limit_rps, `lowest`
    and `highest` are its range."""

    work: str
    clients: int
    workers: int
    rps: float
    p50_ms: float
    p99_ms: float
    limit: str
    limit_rps: float
    ratio: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Cost:
    """The cost of one operation: CPU seconds for a thousand requests, and round trips for one request, if counted."""

    work: str
    clients: int
    workers: int
    web: float
    postgres: float
    round_trips: float | None


def machine() -> list[str]:
    """The facts about the machine and versions that a reader needs to judge the numbers."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        cpu = names[0] if names else cpu
    memory = psutil.virtual_memory().total / 2**30
    return [
        f"{cpu}, {psutil.cpu_count()} cores, {memory:.0f} GB of memory",
        f"{platform.system()} {platform.release()}",
    ]


def measured_by(command: str) -> str:
    """Return the sentence that begins each page of figures: when, by which command and on which machine they were measured."""
    return f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by `{command}`; {'; '.join(machine())}"


def versions(postgresql: str) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"Python {platform.python_version()}, PostgreSQL {postgresql}, {packages}"


def table(rows: Iterable[ReportRow]) -> str:
    """Return the table, with one row for each comparison with a limit."""
    lines = [
        "| work | clients | workers | requests/s | p50 ms | p99 ms | limit | limit/s | ratio | rounds |",
        "|---|--:|--:|--:|--:|--:|---|--:|--:|--:|",
    ]
    lines += [
        f"| {r.work} | {r.clients} | {r.workers} | {r.rps:,.0f} | {r.p50_ms:.2f} | {r.p99_ms:.2f} "
        f"| {r.limit} | {r.limit_rps:,.0f} | {r.ratio:.2f} | {r.lowest:.2f} to {r.highest:.2f} |"
        for r in rows
    ]
    return "\n".join(lines)


def cost_table(costs: Iterable[Cost]) -> str:
    """Return the table of CPU time and round trips."""
    lines = [
        "| work | clients | workers | web CPU s / 1,000 | PostgreSQL CPU s / 1,000 | round trips / request |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {c.work} | {c.clients} | {c.workers} | {c.web:.2f} | {c.postgres:.2f} "
        f"| {'' if c.round_trips is None else f'{c.round_trips:.2f}'} |"
        for c in costs
    ]
    return "\n".join(lines)


def write(
    rows: list[ReportRow], costs: list[Cost], *, command: str, postgresql: str, notes: list[str]
) -> None:
    """Write RESULTS.md and results.json beside this file."""
    facts = [
        f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by `{command}`.",
        *machine(),
        versions(postgresql),
    ]
    parts = [
        "# Results",
        "\n".join(f"- {fact}" for fact in facts),
        table(rows),
        "What it costs:",
        cost_table(costs),
        "How to read it:",
        "\n".join(f"- {note}" for note in notes),
    ]
    (HERE / "RESULTS.md").write_text("\n\n".join(parts) + "\n")
    rounded = [
        {k: round(v, 3) if isinstance(v, float) else v for k, v in asdict(row).items()} for row in rows
    ]
    (HERE / "results.json").write_text(json.dumps(rounded, indent=1) + "\n")
