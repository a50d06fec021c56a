"""One measurement of one operation: on the service, with its statements alone, or with the web server alone."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bench import service, statements, work
from bench.client import LoadJob, Measured, drive
from bench.report import Cost
from bench.service import BenchService

SESSIONS = 16
ROUNDS = 3
# The groups of numbers of clients, by the number of workers. All rounds of one group come before those of the next: after
# many clients, the service works in the background for a while, which would slow a single one. A round measures an operation
# with each number of its group, and then the limits for those in BESIDE; the other numbers of clients are compared with the
# limits of 32 in the same round.
CLIENTS = {1: ((1,), (32, 16, 64, 128)), 2: ((32, 64),)}
_ALL = [clients for groups in CLIENTS.values() for group in groups for clients in group]
BESIDE = {(1, 1): 1, (1, 32): SESSIONS, (2, 32): SESSIONS}
COMPARED_WITH = 32
WARM = 0.4
# The number of orders of a pool that one measurement may use up. A measurement that uses up all of them ends early.
MOST = {clients: 1_500 if clients == 1 else 6_000 for clients in _ALL}
# The number of statements that pgbench sends, by the number of sessions: enough for one to two seconds.
STATEMENTS = {1: 1_000, SESSIONS: 4_800}
# The limits of one round: captures and saves of (1, 32), captures of (1, 1) and of (2, 32).
_ROUND = sum(MOST[clients] for clients in _ALL)
POOL = ROUNDS * (_ROUND + STATEMENTS[1] + 3 * STATEMENTS[SESSIONS]) + 10


@dataclass
class BenchRun:
    """One run: the service, its merchant, and what the operations have used up."""

    place: BenchService
    where: dict[str, Any]
    folder: Path
    merchant: dict[str, Any]
    seconds: float
    token: str = ""
    scripts: dict[str, statements.Script] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    # Order 1 of both pools is used to record the statements, and one capture adds an order to the pool of captured
    # orders.
    used: dict[str, int] = field(default_factory=lambda: dict.fromkeys(work.ONCE, 2))
    moved: int = 2

    @property
    def credentials(self) -> str:
        return json.dumps(service.credentials(self.merchant))

    def take(self, name: str, count: int) -> int:
        """Return the number of the first of `count` orders that this operation has not used yet."""
        first, self.used[name] = self.used[name], self.used[name] + count
        assert self.used[name] <= POOL + 1, "the pool is too small"
        return first


def on_service(
    bench: BenchRun, name: str, workers: int, clients: int, web: list[psutil.Process], *, counting: bool
) -> tuple[Measured, Cost]:
    """Measure the operation on the service, with its CPU time, and with `counting` also its round trips."""
    once = name in work.ONCE
    first, count = (bench.take(name, MOST[clients]), MOST[clients]) if once else (1, POOL)
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


def limits(bench: BenchRun, name: str, workers: int, clients: int, bare_port: int) -> dict[str, float]:
    """Return the requests a second of each limit, by its name."""
    sessions = BESIDE[workers, clients]
    found = {}
    if name in bench.scripts:
        said = f"same SQL, no web ({sessions} session{'s' if sessions > 1 else ''})"
        found[said] = _on_sql(bench, name, sessions)
    found["same web, no SQL"] = drive(_job(bench, name, clients, bare_port, 1, POOL, limit=True)).rps
    if name == "capture" and (workers, clients) == (1, 32):
        found["same SQL, no web, save alone"] = _on_sql(bench, "save", sessions)
    return found


def _job(
    bench: BenchRun, name: str, clients: int, port: int, first: int, count: int, *, limit: bool
) -> LoadJob:
    once = name in work.ONCE and not limit
    seconds, warm = (bench.seconds / 2, WARM / 2) if limit else (bench.seconds, WARM)
    return LoadJob(
        name, port, bench.token, clients, warm, seconds, first, count, cycle=not once,
        credentials=bench.credentials,
    )  # fmt: skip


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
