"""What was measured, as one table for people and one list for programs."""

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
        "Each row stands once beside each limit; a ratio compares numbers of the same run. The limits were measured right "
        "after the rows of 1 and 32 clients; the rows of 16, 64 and 128 stand beside those of 32."
    ),
    (
        "`same SQL, no web`: pgbench with the very statements that the service sends (recorded from its flows), prepared, "
        "over 16 sessions (one session where there is one client), on the service's own database. A capture is "
        "its read and its save; `capture, save alone` leaves the read out."
    ),
    (
        "`same web, no SQL`: the service's edge, framework, server settings and number of workers, with an endpoint that "
        "reads and validates the same body and answers a constant of the same size; no authentication, no flow, no database."
    ),
    (
        "The load comes from one process with a closed loop: each client sends its next request when it has its answer. "
        "It runs on the same cores, as does PostgreSQL: with two cores, two workers have no core of their own."
    ),
    (
        "Each capture is the first of 25.00 on an order of its own of 100.00, each refund the first of 25.00 on an order of "
        "its own that is captured in full; no two meet on one order. The orders are copies of two that went through the "
        "hosted checkout."
    ),
    (
        "`the usual way`: FastAPI and SQLAlchemy's ORM on the same PostgreSQL with 16 sessions (bench/peers/usual.py): it "
        "checks a token by comparing texts and keeps no plan, feed, ledger of two sides or webhooks. `localstripe`: a payment "
        "intent for an order, a charge read, a charge captured in part; it holds all in memory and copies it to a file "
        "with each change. Both with one process, beside 32 clients."
    ),
    "Durable commits throughout: fsync, full_page_writes and synchronous_commit are on.",
    (
        "CPU of PostgreSQL includes its background writers. Round trips are transactions committed by request, at one client; "
        "the worker's own few a second are in them."
    ),
]


@dataclass(frozen=True)
class ReportRow:
    """One work beside one limit. `ratio` is rps by limit_rps, both of this run."""

    work: str
    clients: int
    workers: int
    rps: float
    p50_ms: float
    p99_ms: float
    limit: str
    limit_rps: float
    ratio: float


@dataclass(frozen=True)
class Cost:
    """What a thousand requests of one work cost in CPU seconds, and one request in round trips, if counted."""

    work: str
    clients: int
    workers: int
    web: float
    postgres: float
    round_trips: float | None


def machine() -> list[str]:
    """The facts without which a number means nothing."""
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
    """When, by what and where: how each page of figures begins."""
    return f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by `{command}`; {'; '.join(machine())}"


def versions(postgresql: str) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"Python {platform.python_version()}, PostgreSQL {postgresql}, {packages}"


def table(rows: Iterable[ReportRow]) -> str:
    """Every row beside its limit."""
    lines = [
        "| work | clients | workers | requests/s | p50 ms | p99 ms | limit | limit/s | ratio |",
        "|---|--:|--:|--:|--:|--:|---|--:|--:|",
    ]
    lines += [
        f"| {r.work} | {r.clients} | {r.workers} | {r.rps:,.0f} | {r.p50_ms:.2f} | {r.p99_ms:.2f} "
        f"| {r.limit} | {r.limit_rps:,.0f} | {r.ratio:.2f} |"
        for r in rows
    ]
    return "\n".join(lines)


def cost_table(costs: Iterable[Cost]) -> str:
    """CPU and round trips."""
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
