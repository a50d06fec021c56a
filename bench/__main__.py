"""`python -m bench`: orders created, read and captured, each beside its two limits in the same run.

Ends by itself in under four minutes; prints one table and writes it to bench/RESULTS.md and bench/results.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
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

from bench import bare, report, seed, service, statements, work
from bench.client import Job, Measured, drive
from bench.report import Cost, Row
from bench.service import Place
from cuota import config
from cuota.db.embedded import open_embedded

SESSIONS = 16
SHAPES = ((1, 1), (1, 32), (2, 32))  # workers, clients
WARM = 1.0
# So many the runs at one client and at many may use up; a run that does ends early.
CAPTURES = {1: 6_000, 32: 24_000}
# So many statements pgbench sends by one session and by many: two to four seconds.
STATEMENTS = {1: 3_000, SESSIONS: 16_000}
POOL = (
    1
    + sum(CAPTURES[clients] for _, clients in SHAPES)
    + STATEMENTS[1]
    + 3 * STATEMENTS[SESSIONS]
    + len(work.WORKS)
)
WEB_LIMIT = "same web, no SQL"


@dataclass
class Bench:
    """One run: where the service is, who calls it, and what was found so far."""

    place: Place
    where: dict[str, Any]
    folder: Path
    merchant: dict[str, Any]
    seconds: float
    token: str = ""
    scripts: dict[str, statements.Script] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    # Order 1 went into recording the statements.
    used: int = 2
    captured: int = 1

    def take(self, count: int) -> int:
        """The first of `count` orders that nobody has captured yet."""
        first, self.used = self.used, self.used + count
        assert self.used <= POOL + 1, "the pool is too small"
        return first


def prepare(bench: Bench) -> None:
    """Fill the pool, record the statements, and keep an answer of each work."""
    merchant_id = UUID(bench.merchant["merchantId"])
    with service.serving(bench.place, 1):
        bench.token = service.token(bench.place, bench.merchant)
        model = seed.approved_order(bench.place.url, bench.token)
        say(f"copying an approved order {POOL:,} times")
        asyncio.run(seed.fill(bench.where, merchant_id, model, POOL))
        settings = config.load(bench.place.settings, listen=bench.place.url)
        bench.scripts = asyncio.run(statements.record(settings, bench.where, merchant_id))
        bench.answers = {name: _answer(bench, name) for name in work.WORKS}


def _answer(bench: Bench, name: str) -> str:
    number = bench.take(1)
    head, _, body = work.request(name, number, work.head(bench.token)).partition(b"\r\n\r\n")
    line, *lines = head.decode().split("\r\n")
    method, path, _ = line.split()
    headers = dict(text.split(": ", 1) for text in lines)
    bench.captured += name == "capture"
    answer = httpx.request(method, bench.place.url + path, content=body, headers=headers, trust_env=False)
    return answer.raise_for_status().text


def measure(bench: Bench, workers: int, clients: int, web: list[psutil.Process], bare_port: int) -> None:
    """One shape: every work on the service, then at once on its two limits."""
    for name in work.WORKS:
        found, cost = _on_service(bench, name, workers, clients, web)
        bench.costs.append(cost)
        sessions = min(clients, SESSIONS)
        said = f"same SQL, no web ({sessions} session{'s' if sessions > 1 else ''})"
        limits = {said: _on_sql(bench, name, sessions), WEB_LIMIT: _on_bare(bench, name, clients, bare_port)}
        if name == "capture" and (workers, clients) == SHAPES[1]:
            limits["same SQL, no web, save alone"] = _on_sql(bench, "save", sessions)
        for limit, limit_rps in limits.items():
            bench.rows.append(
                Row(name, clients, workers, found.rps, found.p50_ms, found.p99_ms, limit, limit_rps, found.rps / limit_rps)
            )  # fmt: skip
        beside = "; ".join(f"{limit} {rps:,.0f}" for limit, rps in limits.items())
        say(f"{name}, {clients} clients, {workers} workers: {found.rps:,.0f} a second; {beside}")


def _job(bench: Bench, name: str, clients: int, port: int, first: int, count: int, *, limit: bool) -> Job:
    once = name == "capture" and not limit
    seconds = bench.seconds / 2 if limit else bench.seconds
    return Job(
        name, port, bench.token, clients, WARM / 2 if limit else WARM, seconds, first, count, cycle=not once
    )


def _on_service(
    bench: Bench, name: str, workers: int, clients: int, web: list[psutil.Process]
) -> tuple[Measured, Cost]:
    first, count = (bench.take(CAPTURES[clients]), CAPTURES[clients]) if name == "capture" else (1, POOL)
    counting = (workers, clients) == (1, 1)
    commits = asyncio.run(service.commits(bench.where)) if counting else 0
    before = service.cpu_seconds(web), service.postgres_cpu_seconds(bench.place)
    found = drive(_job(bench, name, clients, bench.place.port, first, count, limit=False))
    after = service.cpu_seconds(web), service.postgres_cpu_seconds(bench.place)
    trips = None
    if counting:
        time.sleep(2.5)  # the session counts late: see service.commits
        trips = (asyncio.run(service.commits(bench.where)) - commits) / found.answers
    bench.captured += found.answers if name == "capture" else 0
    spent = [(then - now) * 1000 / found.answers for now, then in zip(before, after, strict=True)]
    return found, Cost(name, clients, workers, spent[0], spent[1], trips)


def _on_sql(bench: Bench, name: str, sessions: int) -> float:
    count = STATEMENTS[sessions] // sessions * sessions
    captures = name in {"capture", "save"}
    bench.captured += count if captures else 0
    # A created order needs a number that no run before had: later ones of the same counter.
    first = bench.take(count) if captures else 1 if name == "read" else time.time_ns() // 1_000_000 % 2**44
    return statements.pgbench(
        bench.scripts[name], bench.where, bench.folder, clients=sessions, first=first, count=count
    )


def _on_bare(bench: Bench, name: str, clients: int, port: int) -> float:
    return drive(_job(bench, name, clients, port, 1, POOL, limit=True)).rps


async def check(bench: Bench) -> str:
    """What was answered is in the database; answers PostgreSQL's version."""
    owner = await asyncpg.connect(**bench.where)
    try:
        kept = await owner.fetchval("SELECT count(*) FROM movements")
        assert kept == bench.captured, f"{bench.captured} captures were answered, {kept} are kept"
        return str(await owner.fetchval("SHOW server_version"))
    finally:
        await owner.close()


def say(text: str) -> None:
    print(f"bench: {text}", flush=True)


@contextmanager
def _temporary() -> Iterator[Path]:
    """A folder that the unprivileged user of the embedded PostgreSQL may reach."""
    folder = Path(tempfile.mkdtemp(prefix="cuota-bench-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _postgres(place: Place) -> Iterator[dict[str, Any]]:
    """Keeps the service's PostgreSQL running between two starts of the service; what asyncpg.connect takes."""
    try:
        with open_embedded(place.data) as embedded:
            yield dict(embedded.dsn_kwargs)
    finally:
        # Nobody uses it any more, so it stops; only then may its folder go.
        until = time.monotonic() + 60
        while (place.data / "pg" / "postmaster.pid").exists() and time.monotonic() < until:
            time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="so long each row is measured (default 4)")
    options = parser.parse_args()
    started, before = time.monotonic(), os.getloadavg()
    with _temporary() as folder:
        place = Place(folder / "data", service.free_port())
        with _postgres(place) as where:
            name = f"Bench {secrets.token_hex(3)}"
            made = service.cuota(
                place, "merchant", "create", "--name", name, "--defer-funds-capture", "--json"
            )
            bench = Bench(place, where, folder, json.loads(made), options.seconds)
            prepare(bench)
            for workers in sorted({workers for workers, _ in SHAPES}):
                with service.serving(place, workers) as web, bare.running(bench.answers, workers) as port:
                    for _, clients in (shape for shape in SHAPES if shape[0] == workers):
                        measure(bench, workers, clients, web, port)
            postgresql = asyncio.run(check(bench))
            verified = service.cuota(place, "verify").strip()
            say(f"cuota verify: {verified}")
    busy = f"Load average of the machine: {before[0]:.1f} before, {os.getloadavg()[0]:.1f} after the run (one minute each)."
    notes = [*report.NOTES, busy, f"`cuota verify` after the run: {verified}"]
    command = "python -m bench" + (f" --seconds {options.seconds:g}" if options.seconds != 4 else "")
    report.write(bench.rows, bench.costs, command=command, postgresql=postgresql, notes=notes)
    print(f"\n{report.table(bench.rows)}\n\n{report.cost_table(bench.costs)}\n")
    say(f"{time.monotonic() - started:.0f} s; written to bench/RESULTS.md and bench/results.json")


if __name__ == "__main__":
    main()
