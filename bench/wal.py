"""`python -m bench.wal`: measures how much write-ahead log the captures of old orders write, with each value of `wal_compression`.

When a page (8 KB) changes for the first time after a checkpoint, PostgreSQL writes the whole page to the log. A capture of
one of many old orders almost always changes pages that no other capture has changed. So each round begins with a
checkpoint, and captures orders that no earlier round used. The rounds of all values alternate. Uses Debian's PostgreSQL 15, which has all values. Prints a
table for docs/production.md.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

from bench import debian, report, seed, service
from bench.__main__ import temporary
from bench.client import LoadJob, drive
from bench.debian import Elsewhere

ORDERS, CAPTURES, ROUNDS, CLIENTS, SECONDS = 300_000, 1_500, 3, 32, 60.0
_VALUES = "SELECT unnest(enumvals) AS value FROM pg_settings WHERE name = 'wal_compression'"
_SYNONYMS = ("on", "true", "false", "yes", "no", "1", "0")
_WRITTEN = "SELECT wal_bytes::bigint AS bytes, wal_fpi AS pages FROM pg_stat_wal"


@dataclass(frozen=True)
class WalRound:
    """What one capture wrote: bytes of log, and whole pages in it. `postgres_ms` is PostgreSQL's CPU time of one capture."""

    bytes: float
    pages: float
    postgres_ms: float


def values(where: dict[str, Any]) -> list[str]:
    """Return the values that this PostgreSQL was built with."""
    found = [str(row["value"]) for row in asyncio.run(debian.ask(where, _VALUES))]
    return [value for value in found if value not in _SYNONYMS]


def capture(place: Elsewhere, folder: Path, made: dict[str, Any], number: int) -> WalRound:
    """Capture orders that no other round uses, after a checkpoint."""
    where = place.where
    with service.serving(place, 1):
        token = service.token(place, made)
        asyncio.run(debian.ask(where, "CHECKPOINT"))
        [before], cpu = asyncio.run(debian.ask(where, _WRITTEN)), service.server_cpu_seconds(folder)
        job = LoadJob(
            "capture", place.port, token, CLIENTS, 0.0, SECONDS, number * CAPTURES, CAPTURES, cycle=False, spread=ORDERS,
        )  # fmt: skip
        answers = drive(job).answers
        asyncio.run(service.events_published(where))
        cpu = service.server_cpu_seconds(folder) - cpu
    # The sessions of the service have reported what they wrote when they have ended.
    [after] = asyncio.run(debian.ask(where, _WRITTEN))
    done = max(answers, 1)
    return WalRound(
        (after["bytes"] - before["bytes"]) / done,
        (after["pages"] - before["pages"]) / done,
        1000 * cpu / done,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.wal", description=__doc__)
    parser.parse_args()
    found: dict[str, list[WalRound]] = {}
    with temporary() as folder, debian.postgresql(folder) as where:
        place = Elsewhere(folder / "data", service.free_port(), where)
        made = service.merchant(place)
        with service.serving(place, 1):
            model = seed.approved_order(place.url, service.token(place, made))
        asyncio.run(seed.fill(where, UUID(made["merchantId"]), model, ORDERS))
        tried = values(where)
        for number in range(ROUNDS * len(tried)):
            value = tried[number % len(tried)]
            asyncio.run(debian.ask(where, f"ALTER SYSTEM SET wal_compression = '{value}'"))
            asyncio.run(debian.ask(where, "SELECT pg_reload_conf()"))
            found.setdefault(value, []).append(capture(place, folder / "debian", made, number))
            print(f"{value}: {found[value][-1]}", flush=True)
    print(f"{report.measured_by('python -m bench.wal')}; {ORDERS:,} orders, {CAPTURES:,} captures a round.\n")
    print(
        "| wal_compression | log of one capture, KB | whole pages | PostgreSQL CPU, ms |\n|---|--:|--:|--:|"
    )
    for value, rounds in found.items():
        size, pages, cpu = (
            median(each) for each in zip(*((r.bytes, r.pages, r.postgres_ms) for r in rounds), strict=True)
        )
        print(f"| {value} | {size / 1000:.1f} | {pages:.1f} | {cpu:.2f} |")


if __name__ == "__main__":
    main()
