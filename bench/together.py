"""`python -m bench.together`: measures the gain from batching the saves and reads that wait at the same moment (`db/gathered`).

Compares the service as it is with a service that sends each call to the database by itself, in alternating rounds on
the same PostgreSQL. Writes bench/TOGETHER.md and takes about two minutes.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from statistics import median
from uuid import UUID

from bench import report, seed, service
from bench.__main__ import temporary, with_postgres
from bench.client import LoadJob, drive
from bench.service import BenchService

WORKS = ("create", "read", "capture")
CLIENTS = (1, 8, 32, 64)
SECONDS, WARM, TURNS = 2.0, 0.4, 3
MOST = {1: 3_000, 8: 7_000, 32: 9_000, 64: 9_000}
POOL = 2 * TURNS * sum(MOST.values()) + 10
APART = Path(__file__).parent / "apart"
FILE = Path(__file__).parent / "TOGETHER.md"
TogetherRates = dict[tuple[str, int, bool], list[tuple[float, float]]]


def main() -> None:
    found: TogetherRates = defaultdict(list)
    with temporary() as folder:
        place = BenchService(folder / "data", service.free_port())
        with with_postgres(place) as where:
            made = service.merchant(place)
            with service.serving(place, 1):
                token = service.token(place, made)
                model = seed.approved_order(place.url, token)
                asyncio.run(seed.fill(where, UUID(made["merchantId"]), model, POOL))
            first = 1
            for turn in range(2 * TURNS):
                together = turn % 2 == 0
                with service.serving(place, 1, None if together else APART):
                    for clients in CLIENTS:
                        for work in WORKS:
                            job = LoadJob(
                                work, place.port, token, clients, WARM, SECONDS, first, MOST[clients],
                                cycle=work != "capture",
                            )  # fmt: skip
                            measured = drive(job)
                            found[work, clients, together].append((measured.rps, measured.p99_ms))
                        first += MOST[clients]
                print(f"together: turn {turn + 1} of {2 * TURNS}", flush=True)
    write(found)


def write(found: TogetherRates) -> None:
    """Write the medians of the rounds, side by side."""
    lines = []
    for work in WORKS:
        for clients in CLIENTS:
            (rps, late), (alone, late_alone) = (
                [median(column) for column in zip(*found[work, clients, together], strict=True)]
                for together in (True, False)
            )
            lines.append(
                f"| {work} | {clients} | {rps:,.0f} | {alone:,.0f} | {rps / alone:.2f} | {late:.1f} | {late_alone:.1f} |"
            )
    FILE.write_text(
        f"# Speed with and without batching\n\n{report.measured_by('python -m bench.together')}; one web worker, the load on the same cores. Medians of {TURNS} turns of "
        f"{SECONDS:g} s each.\n\n"
        "| work | clients | together/s | one at a time/s | ratio | p99 ms together | p99 ms one at a time |\n"
        "|---|--:|--:|--:|--:|--:|--:|\n" + "\n".join(lines) + "\n"
    )
    print(FILE.read_text())


if __name__ == "__main__":
    main()
