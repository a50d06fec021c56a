"""`python -m bench.growth`: measures the same operations with ten thousand and with a million orders (`--most 5000000`: five million).

One database grows. At each size, orders are read, captured and created in alternating rounds. The order numbers jump,
so that no request uses the same rows as the request before. The orders are either among the newest hundred thousand,
like a shop's orders of the day, or anywhere among the older ones. The cost must not grow with the number of orders:
the last columns compare the speed with the smallest size, and show how much an operation read from the disk because
it was not in memory. Writes the table into bench/GROWTH.md.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

import asyncpg

from bench import report, seed, service
from bench.__main__ import temporary, with_postgres
from bench.client import LoadJob, drive
from bench.service import BenchService

SIZES = (10_000, 1_000_000, 5_000_000)
CLIENTS, SECONDS, ROUNDS = 32, 2.0, 3
CAPTURES = 3_000
NEWEST = 100_000
# The number of orders that one transaction copies.
BATCH = 250_000
FILE = Path(__file__).parent / "GROWTH.md"


@dataclass(frozen=True)
class GrowthRate:
    """Requests a second of one operation at one size (the median of the rounds), also relative to the smallest size.

    `disk_kib` is how much the machine read from the disk for one request.
    """

    orders: int
    work: str
    rps: float
    p99_ms: float
    disk_kib: float
    beside: float


async def grow(where: dict[str, Any], merchant_id: UUID, model: UUID, there: int, size: int) -> None:
    for first in range(there + 1, size + 1, BATCH):
        await seed.fill(where, merchant_id, model, min(first + BATCH - 1, size), first=first)


async def weigh(where: dict[str, Any]) -> int:
    owner = await asyncpg.connect(**where)
    try:
        return int(await owner.fetchval("SELECT pg_database_size(current_database())"))
    finally:
        await owner.close()


def disk_read(folder: Path) -> int:
    """Return how many bytes were read from the disk under this folder since the machine started."""
    device = folder.stat().st_dev
    for line in Path("/proc/diskstats").read_text().splitlines():
        major, minor, _, _, _, sectors, *_ = line.split()
        if (int(major), int(minor)) == (os.major(device), os.minor(device)):
            return int(sectors) * 512
    return 0


def jobs(size: int, before: int, number: int) -> dict[str, dict[str, Any]]:
    """Return the pools of one round's operations.

    Captures use orders that no earlier round used, at this size or a smaller one.
    """
    older = size - NEWEST
    captures = {"first": number * CAPTURES, "count": CAPTURES}
    if older <= 0:
        reads = {"first": 0, "count": size, "spread": size}
        return {"create": reads, "read": reads, "capture": {**captures, "spread": size}}
    reads = {"first": 0, "count": 50_000}
    return {
        "create": {**reads, "spread": size},
        "read, newest": {**reads, "spread": NEWEST, "base": older},
        "capture, newest": {**captures, "spread": NEWEST, "base": older},
        "read, older": {**reads, "spread": older},
        "capture, older": {**captures, "spread": older, "above": before},
    }


def measure(
    place: BenchService, token: str, size: int, before: int
) -> dict[str, list[tuple[float, float, float]]]:
    """Run several rounds of each operation in turn, so that other load on the machine affects all operations alike."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for number in range(ROUNDS):
        for name, through in jobs(size, before, number).items():
            work = name.partition(",")[0]
            job = LoadJob(work, place.port, token, CLIENTS, 0.5, SECONDS, cycle=work != "capture", **through)
            began = disk_read(place.data)
            measured = drive(job)
            read = (disk_read(place.data) - began) / measured.answers / 1024
            found.setdefault(name, []).append((measured.rps, measured.p99_ms, read))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[1], help="the largest size (default 1000000)")
    options = parser.parse_args()
    rows: list[GrowthRate] = []
    weights: list[tuple[int, int]] = []
    smallest: dict[str, float] = {}
    with temporary() as folder:
        place = BenchService(folder / "data", service.free_port())
        with with_postgres(place) as where:
            made = service.merchant(place)
            merchant_id, there = UUID(made["merchantId"]), 0
            for size in (size for size in SIZES if size <= options.most):
                with service.serving(place, 1):
                    token = service.token(place, made)
                    if not there:
                        model = seed.approved_order(place.url, token)
                    started = time.monotonic()
                    asyncio.run(grow(where, merchant_id, model, there, size))
                    there, before = size, there
                    print(
                        f"growth: {size:,} orders, copied in {time.monotonic() - started:.0f} s", flush=True
                    )
                    for work, rounds in measure(place, token, size, before).items():
                        rps, p99, disk = (median(column) for column in zip(*rounds, strict=True))
                        first = smallest.setdefault(work.partition(",")[0], rps)
                        rows.append(GrowthRate(size, work, rps, p99, disk, rps / first))
                weights.append((size, asyncio.run(weigh(where))))
    write(rows, weights, options.most)


def write(rows: list[GrowthRate], weights: list[tuple[int, int]], most: int) -> None:
    lines = [
        "| orders | work | requests/s | p99 ms | from disk, KiB each | relative to the smallest size |",
        "|--:|---|--:|--:|--:|--:|",
        *(
            f"| {r.orders:,} | {r.work} | {r.rps:,.0f} | {r.p99_ms:.1f} | {r.disk_kib:.1f} | {r.beside:.2f} |"
            for r in rows
        ),
    ]
    sizes = ", ".join(f"{size:,} orders {weight / 2**20:,.0f} MiB" for size, weight in weights)
    table = "\n".join(lines)
    print(table)
    FILE.write_text(
        f"# Speed with growing data\n\n{report.measured_by(f'python -m bench.growth --most {most}')};"
        f" {CLIENTS} clients, one web worker, durable commits; each the median of {ROUNDS}"
        f" alternating rounds. Load average after the run: {os.getloadavg()[0]:.1f}.\n\n{table}\n\nThe database: {sizes}.\n"
    )


if __name__ == "__main__":
    main()
