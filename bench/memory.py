"""`python -m bench.memory`: measures the memory of one worker during a million requests, and whether the memory still
grows at the end.

Sends reads, creations, captures, dry runs and tokens in turns, with 64 clients, and notes the worker's resident
memory after each turn. In the second half the memory should stay constant. Writes bench/MEMORY.md. `--requests
100000` gives a quick result.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from uuid import UUID

import psutil

from bench import report, seed, service
from bench.__main__ import temporary, with_postgres
from bench.client import LoadJob, drive
from bench.service import BenchService

WORKS = ("read", "create", "capture", "dry run", "token")
# Requests of each kind in one turn. A token costs as much as ten of the others.
SHARE = {"read": 0.4, "create": 0.3, "capture": 0.08, "dry run": 0.2, "token": 0.02}
TURNS, CLIENTS = 20, 64
FILE = Path(__file__).parent / "MEMORY.md"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000, help="how many in all (default 1000000)")
    options = parser.parse_args()
    captures = int(options.requests * SHARE["capture"]) + TURNS
    with temporary() as folder:
        place = BenchService(folder / "data", service.free_port())
        with with_postgres(place) as where:
            made = service.merchant(place)
            with service.serving(place, 1) as web:
                token = service.token(place, made)
                model = seed.approved_order(place.url, token)
                asyncio.run(seed.fill(where, UUID(made["merchantId"]), model, captures))
                rows = [(0, _mib(web[0]))]
                answers, first = 0, 1
                for _ in range(TURNS):
                    for work in WORKS:
                        count = int(options.requests * SHARE[work] / TURNS)
                        begin = first if work == "capture" else 1
                        job = LoadJob(
                            work, place.port, token, CLIENTS, 0.0, 300.0, begin, count, cycle=False,
                            credentials=json.dumps(service.credentials(made)),
                        )  # fmt: skip
                        answers += drive(job).answers
                        first += count if work == "capture" else 0
                    rows.append((answers, _mib(web[0])))
                    print(f"memory: {answers:,} requests, {rows[-1][1]:.1f} MiB", flush=True)
    write(rows, options.requests)


def _mib(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 2**20


def write(rows: list[tuple[int, float]], requests: int) -> None:
    half = rows[len(rows) // 2][1]
    table = "\n".join(f"| {answers:,} | {mib:.1f} |" for answers, mib in rows)
    FILE.write_text(
        f"# The memory of a worker\n\n{report.measured_by(f'python -m bench.memory --requests {requests}')};"
        f" {CLIENTS} clients, one web worker.\n\n"
        f"| requests | resident MiB |\n|--:|--:|\n{table}\n\n"
        f"In the second half of the run, the memory changed by {rows[-1][1] - half:+.1f} MiB.\n"
    )
    print(FILE.read_text())


if __name__ == "__main__":
    main()
