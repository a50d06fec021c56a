"""`python -m bench.request_log`: what the request log costs a capture.

Measured twice. Side by side: two services with one worker each share one database, and one of them has CUOTA_REQUEST_LOG=off.
The merchant's dashboard has a person, so the other service logs each capture. CPU time is that of both workers and of PostgreSQL,
without what they use at rest. Directly: only the log's own work for a capture, in one process and one session of the database;
other load on the machine changes this figure much less. Prints a table. `--quick` is for a first look.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import psutil

from bench import client, seed, service
from bench.__main__ import temporary, with_postgres
from bench.client import LoadJob, Measured
from bench.service import BenchService
from bench.work import order_id
from cuota import config
from cuota.core.credential import Scope
from cuota.db.merchant import merchants
from cuota.flows.merchant.authenticate import Caller
from cuota.run import runtime
from cuota.web.app import ROUTES
from cuota.web.request_log import WRITTEN_AT_ONCE, RequestLog
from cuota.web.server.request_id import new_request_id

CLIENTS = 8
# The jobs of a capture (feed, settlement line) and the last batch of the log are done within this time.
AFTER_SECONDS = 3.0
ORDERS_A_SECOND = 1500
TICKS = os.sysconf("SC_CLK_TCK")
Round = tuple[float, float, Measured]
ASKED = b'{"amount":"25.00","merchantReference":"bench"}'
ANSWER = b'{"merchantReference":"bench","amount":25.00,"dateTime":"2026-11-24T09:10:11.123Z"}'
HEADERS = [(name, b"x" * 40) for name in (b"host", b"authorization", b"content-type", b"content-length")]


class Spent:
    """The CPU seconds of both workers and of PostgreSQL, less what they use at rest."""

    def __init__(self, place: BenchService, workers: list[psutil.Process]) -> None:
        self._place, self._workers = place, workers
        self._idle = (0.0, 0.0)
        began, before = time.monotonic(), self._now()
        time.sleep(3 * AFTER_SECONDS)
        took, after = time.monotonic() - began, self._now()
        self._idle = ((after[0] - before[0]) / took, (after[1] - before[1]) / took)
        self._began, self._before = time.monotonic(), self._now()

    def _now(self) -> tuple[float, float]:
        return service.cpu_seconds(self._workers), service.postgres_cpu_seconds(self._place)

    def begin(self) -> None:
        self._began, self._before = time.monotonic(), self._now()

    def end(self, operations: int) -> tuple[float, float]:
        """Return the microseconds of one operation: of the workers, and of PostgreSQL."""
        took, now = time.monotonic() - self._began, self._now()
        ours, theirs = (now[n] - self._before[n] - self._idle[n] * took for n in (0, 1))
        return ours / operations * 1e6, theirs / operations * 1e6


def measure(
    places: dict[str, BenchService], workers: list[psutil.Process], token: str, rounds: int, seconds: float
) -> dict[str, list[Round]]:
    """Return what a capture cost and what the clients saw, by service and round."""
    found: dict[str, list[Round]] = defaultdict(list)
    spent, first = Spent(places["on"], workers), 2
    for number in range(rounds + 1):
        for name in sorted(places, reverse=bool(number % 2)):
            count = int(seconds * ORDERS_A_SECOND)
            job = LoadJob(
                "capture", places[name].port, token, CLIENTS, 0.0, seconds, first, count, cycle=False
            )
            first += count
            spent.begin()
            seen = client.drive(job)
            time.sleep(AFTER_SECONDS)
            cost = spent.end(seen.answers)
            if number:  # the first round prepares statements
                found[name].append((*cost, seen))
    return found


def table(found: dict[str, list[Round]]) -> list[str]:
    """Return the medians of the rounds, and the difference."""
    lines = [
        "| request log | CPU of a capture, workers | PostgreSQL | captures a second | p50 ms | p99 ms |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, rounds in sorted(found.items()):
        ours = statistics.median([each[0] for each in rounds])
        theirs = statistics.median([each[1] for each in rounds])
        rate = statistics.median([each[2].rps for each in rounds])
        half, slow = (
            statistics.median(times)
            for times in zip(*((each[2].p50_ms, each[2].p99_ms) for each in rounds), strict=True)
        )
        lines.append(f"| {name} | {ours:.0f} µs | {theirs:.0f} µs | {rate:.0f} | {half:.2f} | {slow:.2f} |")
    pairs = zip(found["off"], found["on"], strict=True)
    more = [(on[0] + on[1]) / (off[0] + off[1]) - 1 for off, on in pairs]
    middle = statistics.median(more)
    said = f"Side by side, the log costs {middle:+.1%} of a capture's CPU ({min(more):+.1%} to {max(more):+.1%} by round)."
    return [*lines, "", said]


async def directly(
    place: BenchService, where: dict[str, Any], merchant_id: UUID, count: int
) -> tuple[float, float]:
    """Return the microseconds that the log's own work takes for a capture: of the process, and of its database session."""
    settings = config.load({"CUOTA_DATA_DIR": str(place.data)})
    async with runtime.opened(settings, where, pool_size=1, decides=False) as context:
        merchant = await merchants.read(context.pool, merchant_id)
        row = await context.pool.fetchrow("SELECT pg_backend_pid() AS pid")
        assert merchant is not None
        assert row is not None
        caller = Caller(merchant, Scope.FULL, f"client_{'0' * 24}", "bench", staffed=True)
        (route,) = (each for each in ROUTES if each.path == "/order/{order_id}/capture")
        log, number = RequestLog(context), 0

        async def some(calls: int) -> None:
            nonlocal number
            for _ in range(calls):
                number += 1
                record = log.begin(caller)
                assert record is not None
                record.asked(ASKED)
                record.answered(ANSWER)
                scope = {
                    "request_id": new_request_id(), "method": "POST", "route": route, "headers": HEADERS,
                    "path_params": {"order_id": str(order_id(number))}, "query_string": b"", "client": ("127.0.0.1", 5),
                }  # fmt: skip
                log.end(record, scope, 200, 0.003)
            await log.flush()

        await some(WRITTEN_AT_ONCE)
        ours, theirs = time.process_time(), _session_cpu(row["pid"])
        for _ in range(count // WRITTEN_AT_ONCE):
            await some(WRITTEN_AT_ONCE)
        done = count // WRITTEN_AT_ONCE * WRITTEN_AT_ONCE
        return (
            (time.process_time() - ours) / done * 1e6,
            (_session_cpu(row["pid"]) - theirs) / done * 1e6,
        )


def _session_cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def stored(where: dict[str, Any]) -> str:
    """Return how many calls are in the log, and how much room they take."""
    owner = await asyncpg.connect(**where)
    try:
        row = await owner.fetchrow(
            "SELECT count(*) AS calls, pg_total_relation_size('api_requests') AS bytes FROM api_requests"
        )
        return f"{row['calls']} calls are in the log, with {row['bytes'] / row['calls']:.0f} bytes each."
    finally:
        await owner.close()


def main() -> None:
    """Fill a database, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rounds, seconds = (2, 2.0) if options.quick else (options.rounds, options.seconds)
    with temporary() as folder:
        place = BenchService(folder / "data", service.free_port())
        with with_postgres(place) as where:
            made = service.merchant(place)
            merchant_id = UUID(made["merchantId"])
            service.cuota(place, "desk", "link", "--merchant", "Shop", "--role", "owner")
            with service.serving(place, 1):
                token = service.token(place, made)
                model = seed.approved_order(place.url, token)
            orders = int((rounds + 1) * 2 * seconds * ORDERS_A_SECOND) + 10
            asyncio.run(seed.fill(where, merchant_id, model, orders))
            # A token names its issuer, so both services have the same public address.
            settings = (("CUOTA_REQUEST_LOG", "off"), ("CUOTA_PUBLIC_URL", place.url))
            off = replace(place, port=service.free_port(), more=settings)
            with service.serving(place, 1) as on_workers, service.serving(off, 1) as off_workers:
                found = measure(
                    {"on": place, "off": off}, [*on_workers, *off_workers], token, rounds, seconds
                )
            print("\n".join(table(found)), flush=True)
            ours, theirs = asyncio.run(directly(place, where, merchant_id, 20_000))
            whole = statistics.median([each[0] + each[1] for each in found["off"]])
            print(
                f"Directly, the log's own work is {ours:.1f} µs in the worker and {theirs:.1f} µs in PostgreSQL:"
                f" {(ours + theirs) / whole:.1%} of a capture's {whole:.0f} µs."
            )
            print(asyncio.run(stored(where)))


if __name__ == "__main__":
    main()
