"""`python -m bench.where`: shows how the time of a creation, a read, a capture and a refund is spent, in PostgreSQL and in
the web process.

Uses Debian's PostgreSQL with pg_stat_statements and auto_explain (apt-get install postgresql-15), 32 clients and one
web worker; py-spy, from .venv/peers, profiles the worker. Each of these tools costs time itself, so only shares are
valid here, not speeds. Writes bench/WHERE.md and takes about a minute.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import psutil

from bench import debian, peers, report, seed, service, where_plans
from bench.__main__ import temporary
from bench.client import LoadJob, drive
from bench.debian import Elsewhere
from bench.work import CAPTURED_PREFIX, ONCE

WORKS = ("create", "read", "capture", "refund")
CLIENTS, SECONDS, POOL = 32, 4.0, 80_000
# Each of the three loads of each operation uses other orders.
SHARES = 3 * len(WORKS)
FILE = Path(__file__).parent / "WHERE.md"
LIBRARIES = {"uvicorn", "starlette", "asyncpg", "prometheus_client"}
SPY = peers.PYTHON.with_name("py-spy")
_STATEMENTS = """SELECT query, calls, total_exec_time AS ms, rows, wal_bytes FROM pg_stat_statements
    WHERE userid IN (SELECT oid FROM pg_roles WHERE rolname IN ('cuota_app', 'cuota_service')) AND toplevel ORDER BY total_exec_time DESC LIMIT 6"""


@dataclass(frozen=True)
class WhereRun:
    """One run."""

    place: Elsewhere
    token: str
    web: psutil.Process


def main() -> None:
    with temporary() as folder, debian.postgresql(folder) as where:
        place = Elsewhere(folder / "data", service.free_port(), where)
        made = service.merchant(place)
        with service.serving(place, 1) as web:
            bench = WhereRun(place, service.token(place, made), web[0])
            model = seed.approved_order(place.url, bench.token)
            asyncio.run(seed.fill(where, UUID(made["merchantId"]), model, POOL))
            model = seed.captured_order(place.url, bench.token)
            asyncio.run(seed.fill(where, UUID(made["merchantId"]), model, POOL, CAPTURED_PREFIX))
            parts = [part for number, work in enumerate(WORKS) for part in look(bench, work, number, folder)]
    head = f"# Where the time goes\n\n{report.measured_by('python -m bench.where')}; {CLIENTS} clients, one web worker, Debian's PostgreSQL 15.\n"
    FILE.write_text("\n".join([head, *parts]))
    print(FILE.read_text())


def look(bench: WhereRun, work: str, number: int, folder: Path) -> Iterable[str]:
    """One operation: its statements, their steps, and the profile of the web process."""
    first = number * 3 * POOL // SHARES + 2

    def load(turn: int) -> int:
        job = LoadJob(
            work, bench.place.port, bench.token, CLIENTS, 0.3, SECONDS, first + turn * POOL // SHARES, POOL // SHARES,
            cycle=work not in ONCE,
        )  # fmt: skip
        return drive(job).answers

    where = bench.place.where
    asyncio.run(debian.ask(where, "SELECT pg_stat_statements_reset()"))
    answers = load(0)
    yield f"## {work}\n"
    yield statements(asyncio.run(debian.ask(where, _STATEMENTS)), answers)
    with where_plans.explaining(where, folder) as plans:
        load(1)
    yield where_plans.table(plans())
    yield web(bench.web, lambda: load(2), folder)


def statements(rows: list[asyncpg.Record], answers: int) -> str:
    """Return the counts of pg_stat_statements."""
    lines = [
        f"| `{' '.join(row['query'].split())[:90].replace('|', ' ')}` | {row['calls'] / answers:.3f} "
        f"| {answers / row['calls']:.1f} | {row['ms'] / answers * 1000:.0f} | {row['wal_bytes'] / answers:.0f} |"
        for row in rows
    ]
    return (
        f"{answers:,} requests. pg_stat_statements, by time:\n\n"
        "| statement | calls / request | requests / call | microseconds / request | bytes of WAL / request |\n"
        "|---|--:|--:|--:|--:|\n" + "\n".join(lines) + "\n"
    )


def web(process: psutil.Process, load: Any, folder: Path) -> str:
    """Return the worker's time in py-spy's profile, by the package whose code ran."""
    if not SPY.exists():
        return "py-spy is not there: `make .venv/peers/ready` installs it.\n"
    raw = folder / "stacks.txt"
    seconds, pid = str(int(SECONDS)), str(process.pid)
    command = [str(SPY), "record", "-d", seconds, "-r", "400", "-f", "raw", "-o", str(raw), "-p", pid]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as spy:
        load()
        spy.wait(60)
    owners: Counter[str] = Counter()
    for line in raw.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        owners[_owner(stack.split(";")[-1])] += int(count)
    total = sum(owners.values())
    lines = [f"| {owner} | {count / total:.0%} |" for owner, count in owners.most_common(9)]
    return "py-spy, by whose code is at work:\n\n| code | share |\n|---|--:|\n" + "\n".join(lines) + "\n"


def _owner(frame: str) -> str:
    file = frame.partition("(")[2].rpartition(":")[0]
    parts = file.split("/")
    if parts[0] == "cuota":
        return ".".join(parts[:2]).removesuffix(".py") if len(parts) > 2 else "cuota"
    if file.startswith("asyncio/"):
        return "the event loop and the system's calls"
    return parts[0] if parts[0] in LIBRARIES else "the rest"


if __name__ == "__main__":
    main()
