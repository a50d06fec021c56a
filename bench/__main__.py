"""`python -m bench`: compares every operation of the merchant's API with its limits and with other systems, in the same
run.

It takes about ten minutes, prints one table, and writes the table to bench/RESULTS.md and bench/results.json.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import httpx

from bench import bare, peers, report, seed, service, statements, work
from bench.client import LoadJob, drive
from bench.measure import CLIENTS, POOL, ROUNDS, WARM, BenchRun
from bench.report import ReportRow
from bench.rounds import Rounds, compared
from bench.service import BenchService
from cuota import config
from cuota.db.embedded.server import open_embedded

PEERS_AT = 32


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
    asked = work.request(name, number, work.head(bench.token), bench.credentials)
    head, _, body = asked.partition(b"\r\n\r\n")
    line, *lines = head.decode().split("\r\n")
    method, path, _ = line.split()
    headers = dict(text.split(": ", 1) for text in lines)
    bench.moved += name in work.ONCE
    answer = httpx.request(method, bench.place.url + path, content=body, headers=headers, trust_env=False)
    return answer.raise_for_status().text


def beside_peers(bench: BenchRun, rounds: Rounds) -> list[ReportRow]:
    """Measure the closest operation of the other systems once, with the same number of clients."""
    limits: dict[str, dict[str, float]] = {name: {} for name in ("create", "read", "capture")}
    seconds = 2 * bench.seconds
    with peers.usual(bench.where, 20_000) as port:
        for name, found in limits.items():
            job = LoadJob(name, port, peers.TOKEN, PEERS_AT, WARM, seconds, 1, 20_000, name != "capture")
            found["the usual way (FastAPI, SQLAlchemy)"] = drive(job).rps
    with peers.localstripe() as (port, names):
        for name, found in limits.items():
            count, once = len(names), name == "capture"
            job = LoadJob(
                name, port, peers.TOKEN, PEERS_AT, 0.1, seconds, 0, count, not once, names=names
            )  # fmt: skip
            found["localstripe (keeps nothing)"] = drive(job).rps
    for name, found in limits.items():
        say(f"{name}: " + "; ".join(f"{peer} {rps:,.0f}" for peer, rps in found.items()))
    return [
        compared(name, 1, PEERS_AT, rounds.found[name, 1, PEERS_AT], peer, [rps] * ROUNDS)
        for name, found in limits.items()
        for peer, rps in found.items()
    ]


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
        "--seconds", type=float, default=1.0, help="how long each row is measured in each round (default 1)"
    )
    options = parser.parse_args()
    started, before, rounds = time.monotonic(), os.getloadavg(), Rounds()
    with temporary() as folder:
        place = BenchService(folder / "data", service.free_port())
        with with_postgres(place) as where:
            bench = BenchRun(place, where, folder, service.merchant(place), options.seconds)
            prepare(bench)
            for workers, groups in CLIENTS.items():
                with service.serving(place, workers) as web, bare.running(bench.answers, workers) as port:
                    for group, number in product(groups, range(ROUNDS)):
                        say(f"workers: {workers}, clients: {group}, round {number + 1} of {ROUNDS}")
                        rounds.measure(bench, workers, group, web, port)
            rows = [*rounds.rows(), *beside_peers(bench, rounds)]
            postgresql = asyncio.run(check(bench))
            verified = service.cuota(place, "verify").strip()
            say(f"cuota verify: {verified}")
    busy = f"Load average of the machine: {before[0]:.1f} before, {os.getloadavg()[0]:.1f} after the run (one minute each)."
    notes = [*report.NOTES, busy, f"`cuota verify` after the run: {verified}"]
    command = "python -m bench" + (f" --seconds {options.seconds:g}" if options.seconds != 1 else "")
    costs = rounds.costs()
    report.write(rows, costs, command=command, postgresql=postgresql, notes=notes)
    print(f"\n{report.table(rows)}\n\n{report.cost_table(costs)}\n")
    say(f"{time.monotonic() - started:.0f} s; written to bench/RESULTS.md and bench/results.json")


if __name__ == "__main__":
    main()
