"""`python -m bench`: compares every operation of the merchant's API with its limits and with other systems, in the same
run.

It takes about seven minutes, prints one table, and writes the table to bench/RESULTS.md and bench/results.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import psutil

from bench import bare, peers, report, seed, service, statements, work
from bench.client import LoadJob, Measured, drive
from bench.report import Cost, ReportRow
from bench.service import BenchService
from cuota import config
from cuota.db.embedded.server import open_embedded

SESSIONS = 16
# Pairs of (workers, clients). The limits are measured next to the pairs in BESIDE; the other pairs are compared with
# these.
SHAPES = ((1, 1), (1, 32), (1, 16), (1, 64), (1, 128), (2, 32), (2, 64))
BESIDE = {(1, 1): 1, (1, 32): SESSIONS, (2, 32): SESSIONS}
WARM = 0.6
# The number of orders of a pool that one run may use up, by the number of clients. A run that uses up all of them ends
# early.
MOST = {clients: 4_000 if clients == 1 else 15_000 for _, clients in SHAPES}
# The number of statements that pgbench sends, by the number of sessions: enough for two to four seconds.
STATEMENTS = {1: 3_000, SESSIONS: 14_000}
POOL = sum(MOST[clients] for _, clients in SHAPES) + STATEMENTS[1] + 3 * STATEMENTS[SESSIONS] + 10
WEB_LIMIT = "same web, no SQL"
PEERS_AT = 32


@dataclass
class BenchRun:
    """One run: the service, its clients, and the results so far."""

    place: BenchService
    where: dict[str, Any]
    folder: Path
    merchant: dict[str, Any]
    seconds: float
    token: str = ""
    scripts: dict[str, statements.Script] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    rows: list[ReportRow] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    limits: dict[tuple[str, int, int], dict[str, float]] = field(default_factory=dict)
    # Order 1 of both pools is used to record the statements, and one capture adds an order to the pool of captured
    # orders.
    used: dict[str, int] = field(default_factory=lambda: dict.fromkeys(work.ONCE, 2))
    moved: int = 2

    def take(self, name: str, count: int) -> int:
        """Return the number of the first of `count` orders that this operation has not used yet."""
        first, self.used[name] = self.used[name], self.used[name] + count
        assert self.used[name] <= POOL + 1, "the pool is too small"
        return first


def prepare(bench: BenchRun) -> None:
    """Fill the pools, record the statements, and keep one answer of each operation."""
    merchant_id = UUID(bench.merchant["merchantId"])
    with service.serving(bench.place, 1):
        bench.token = service.token(bench.place, bench.merchant)
        say(f"copying an approved and a captured order {POOL:,} times")
        model = seed.approved_order(bench.place.url, bench.token)
        asyncio.run(seed.fill(bench.where, merchant_id, model, POOL))
        model = seed.captured_order(bench.place.url, bench.token)
        asyncio.run(seed.fill(bench.where, merchant_id, model, POOL, work.CAPTURED_PREFIX))
        bench.moved += POOL + 1
        settings = config.load(bench.place.settings, listen=bench.place.url)
        bench.scripts = asyncio.run(statements.record(settings, bench.where, merchant_id))
        bench.answers = {name: _answer(bench, name) for name in work.WORKS}


def _answer(bench: BenchRun, name: str) -> str:
    number = bench.take(name, 1) if name in work.ONCE else 3
    asked = work.request(name, number, work.head(bench.token), _credentials(bench))
    head, _, body = asked.partition(b"\r\n\r\n")
    line, *lines = head.decode().split("\r\n")
    method, path, _ = line.split()
    headers = dict(text.split(": ", 1) for text in lines)
    bench.moved += name in work.ONCE
    answer = httpx.request(method, bench.place.url + path, content=body, headers=headers, trust_env=False)
    return answer.raise_for_status().text


def _credentials(bench: BenchRun) -> str:
    return json.dumps(service.credentials(bench.merchant))


def measure(bench: BenchRun, workers: int, clients: int, web: list[psutil.Process], bare_port: int) -> None:
    """Measure every operation on the service with this number of workers and clients, and directly afterwards its limits."""
    for name in work.WORKS:
        found, cost = _on_service(bench, name, workers, clients, web)
        bench.costs.append(cost)
        if (workers, clients) in BESIDE:
            bench.limits[name, workers, clients] = _limits(bench, name, workers, clients, bare_port)
        limits = bench.limits.get((name, workers, clients)) or bench.limits[name, workers, 32]
        bench.rows += [_row(name, clients, workers, found, *limit) for limit in limits.items()]
        beside = "; ".join(f"{limit} {rps:,.0f}" for limit, rps in limits.items())
        say(f"{name}, {clients} clients, {workers} workers: {found.rps:,.0f} a second; {beside}")


def _row(name: str, clients: int, workers: int, found: Measured, limit: str, rps: float) -> ReportRow:
    return ReportRow(
        name, clients, workers, found.rps, found.p50_ms, found.p99_ms, limit, rps, found.rps / rps
    )  # fmt: skip


def _limits(bench: BenchRun, name: str, workers: int, clients: int, bare_port: int) -> dict[str, float]:
    sessions = BESIDE[workers, clients]
    limits = {}
    if name in bench.scripts:
        said = f"same SQL, no web ({sessions} session{'s' if sessions > 1 else ''})"
        limits[said] = _on_sql(bench, name, sessions)
    limits[WEB_LIMIT] = _on_bare(bench, name, clients, bare_port)
    if name == "capture" and (workers, clients) == (1, 32):
        limits["same SQL, no web, save alone"] = _on_sql(bench, "save", sessions)
    return limits


def beside_peers(bench: BenchRun) -> None:
    """Measure the closest operation of the other systems, with the same number of clients."""
    own = {row.work: row for row in bench.rows if (row.clients, row.workers) == (PEERS_AT, 1)}
    limits: dict[str, dict[str, float]] = {name: {} for name in ("create", "read", "capture")}
    with peers.usual(bench.where, 20_000) as port:
        for name, found in limits.items():
            job = LoadJob(
                name, port, peers.TOKEN, PEERS_AT, WARM, bench.seconds, 1, 20_000, name != "capture"
            )
            found["the usual way (FastAPI, SQLAlchemy)"] = drive(job).rps
    with peers.localstripe() as (port, names):
        for name, found in limits.items():
            count, once = len(names), name == "capture"
            seconds = bench.seconds
            job = LoadJob(
                name, port, peers.TOKEN, PEERS_AT, 0.1, seconds, 0, count, not once, names=names
            )  # fmt: skip
            found["localstripe (keeps nothing)"] = drive(job).rps
    for name, found in limits.items():
        say(f"{name}: " + "; ".join(f"{peer} {rps:,.0f}" for peer, rps in found.items()))
        row = own[name]
        bench.rows += [
            ReportRow(name, PEERS_AT, 1, row.rps, row.p50_ms, row.p99_ms, peer, rps, row.rps / rps)
            for peer, rps in found.items()
        ]


def _job(
    bench: BenchRun, name: str, clients: int, port: int, first: int, count: int, *, limit: bool
) -> LoadJob:
    once = name in work.ONCE and not limit
    seconds, warm = (bench.seconds / 2, WARM / 2) if limit else (bench.seconds, WARM)
    return LoadJob(
        name, port, bench.token, clients, warm, seconds, first, count, cycle=not once,
        credentials=_credentials(bench),
    )  # fmt: skip


def _on_service(
    bench: BenchRun, name: str, workers: int, clients: int, web: list[psutil.Process]
) -> tuple[Measured, Cost]:
    once = name in work.ONCE
    first, count = (bench.take(name, MOST[clients]), MOST[clients]) if once else (1, POOL)
    counting = (workers, clients) == (1, 1)
    commits = asyncio.run(service.commits(bench.where)) if counting else 0
    before = service.cpu_seconds(web), service.postgres_cpu_seconds(bench.place)
    found = drive(_job(bench, name, clients, bench.place.port, first, count, limit=False))
    after = service.cpu_seconds(web), service.postgres_cpu_seconds(bench.place)
    trips = None
    if counting:
        time.sleep(2.5)  # the session's count arrives late: see service.commits
        trips = (asyncio.run(service.commits(bench.where)) - commits) / found.answers
    bench.moved += found.answers if once else 0
    spent = [(then - now) * 1000 / found.answers for now, then in zip(before, after, strict=True)]
    return found, Cost(name, clients, workers, spent[0], spent[1], trips)


def _on_sql(bench: BenchRun, name: str, sessions: int) -> float:
    count = STATEMENTS[sessions] // sessions * sessions
    pool = {"capture": "capture", "save": "capture", "refund": "refund"}.get(name)
    bench.moved += count if pool else 0
    # Each created order needs a number that no earlier run used, so take later values of the same counter.
    first = (
        bench.take(pool, count) if pool else time.time_ns() // 1_000_000 % 2**44 if name == "create" else 1
    )
    return statements.pgbench(
        bench.scripts[name], bench.where, bench.folder, clients=sessions, first=first, count=count
    )


def _on_bare(bench: BenchRun, name: str, clients: int, port: int) -> float:
    return drive(_job(bench, name, clients, port, 1, POOL, limit=True)).rps


async def check(bench: BenchRun) -> str:
    """Check that the database has all operations that were answered with success. Return PostgreSQL's version."""
    owner = await asyncpg.connect(**bench.where)
    try:
        kept = await owner.fetchval("SELECT count(*) FROM movements")
        assert kept == bench.moved, f"{bench.moved} captures and refunds were answered, {kept} are kept"
        return str(await owner.fetchval("SHOW server_version"))
    finally:
        await owner.close()


def say(text: str) -> None:
    print(f"bench: {text}", flush=True)


@contextmanager
def temporary() -> Iterator[Path]:
    """Make a folder that the unprivileged user of the embedded PostgreSQL may enter."""
    folder = Path(tempfile.mkdtemp(prefix="cuota-bench-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def with_postgres(place: BenchService) -> Iterator[dict[str, Any]]:
    """Keep the service's PostgreSQL running between two starts of the service. Yield the arguments of asyncpg.connect."""
    try:
        with open_embedded(place.data) as embedded:
            yield dict(embedded.dsn_kwargs)
    finally:
        # No process uses PostgreSQL anymore, so it stops. Only then may its folder be deleted.
        until = time.monotonic() + 60
        while (place.data / "pg" / "postmaster.pid").exists() and time.monotonic() < until:
            time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=2.5, help="how long each row is measured (default 2.5)"
    )
    options = parser.parse_args()
    started, before = time.monotonic(), os.getloadavg()
    with temporary() as folder:
        place = BenchService(folder / "data", service.free_port())
        with with_postgres(place) as where:
            bench = BenchRun(place, where, folder, service.merchant(place), options.seconds)
            prepare(bench)
            for workers in sorted({workers for workers, _ in SHAPES}):
                with service.serving(place, workers) as web, bare.running(bench.answers, workers) as port:
                    for _, clients in (shape for shape in SHAPES if shape[0] == workers):
                        measure(bench, workers, clients, web, port)
            beside_peers(bench)
            postgresql = asyncio.run(check(bench))
            verified = service.cuota(place, "verify").strip()
            say(f"cuota verify: {verified}")
    busy = f"Load average of the machine: {before[0]:.1f} before, {os.getloadavg()[0]:.1f} after the run (one minute each)."
    notes = [*report.NOTES, busy, f"`cuota verify` after the run: {verified}"]
    command = "python -m bench" + (f" --seconds {options.seconds:g}" if options.seconds != 2.5 else "")
    report.write(bench.rows, bench.costs, command=command, postgresql=postgresql, notes=notes)
    print(f"\n{report.table(bench.rows)}\n\n{report.cost_table(bench.costs)}\n")
    say(f"{time.monotonic() - started:.0f} s; written to bench/RESULTS.md and bench/results.json")


if __name__ == "__main__":
    main()
