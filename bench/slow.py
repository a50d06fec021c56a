"""`python -m bench.slow`: measures how 2,000 slow connections affect other merchants. Takes less than three minutes.

Three merchants send creations, reads and captures at fixed times (bench/flood.py): first alone, then beside 2,000
slow connections of each kind (bench/slow_clients.py). When the service ends a slow connection, a new one is opened.
Prints a table and writes it into docs/proof.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psutil

from bench import flood, proof, report, seed, service, slow_clients
from bench.flood import Flood, Sender
from bench.flood_results import Came
from bench.overload import _place
from bench.service import BenchService

MERCHANTS = 3
POOL = 1_000
# The measurement is longer than the longest timeout, so that the service ends all slow connections during it.
SECONDS = 16.0
WARM_SECONDS = 3.0


@dataclass
class SlowRun:
    """One run."""

    place: BenchService
    tokens: list[str]
    web: list[psutil.Process]
    rate: float
    floods: int = 0

    def honest(self, seconds: float) -> Came:
        self.floods += 1
        senders = [Sender(token, [self.rate / MERCHANTS]) for token in self.tokens[:MERCHANTS]]
        return Came(flood.drive(Flood(self.place.port, [seconds], senders, POOL, self.floods)))

    def row(self, kind: str, crowd: SlowProcess | None) -> tuple[float, str]:
        """Return the p99, and the row of the table that contains it."""
        spent = service.cpu_seconds(self.web)
        came = self.honest(SECONDS)
        cpu = (service.cpu_seconds(self.web) - spent) / came.found["took"]
        memory = sum(process.memory_info().rss for process in self.web) / 1e6
        count, slow = came.count(), crowd.end() if crowd else {}
        told = ", ".join(f"{number} x {status}" for status, number in slow.get("told", {}).items()) or "-"
        lived = f"{slow['shortest']:.1f} to {slow['longest']:.1f} s" if slow.get("ended") else "-"
        p99 = count.percentile(99)
        return p99, (
            f"| {kind} | {slow.get('open', 0):,} | {slow.get('ended', 0):,} | {lived} | {told} "
            f"| {count.offered / SECONDS:,.0f} | {count.good / count.offered:.2%} | {count.percentile(50):.1f} | {p99:.1f} "
            f"| {cpu:.0%} | {memory:.0f} | {came.generator} |"
        )


class SlowProcess:
    """The process that keeps the slow connections open."""

    def __init__(self, place: BenchService, kind: str, count: int, token: str) -> None:
        command = [sys.executable, "-m", "bench.slow_clients", str(place.port), kind, str(count)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(token + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the slow clients did not get ready")

    def end(self) -> dict[str, Any]:
        """Return the results of the slow connections."""
        said, _ = self.process.communicate(timeout=30)
        found: dict[str, Any] = json.loads(said.strip().splitlines()[-1])
        return found

    def kill(self) -> None:
        self.process.kill()
        with contextlib.suppress(ValueError):
            self.process.communicate()


@contextlib.contextmanager
def crowded(place: BenchService, kind: str, count: int, token: str) -> Iterator[SlowProcess]:
    crowd = SlowProcess(place, kind, count, token)
    try:
        yield crowd
    finally:
        crowd.kill()


HEAD = (
    "| slow connections | open at the end | ended by the service | lifetime of each | response | honest/s | answered 200 | p50 ms | p99 ms "
    "| CPU of the service | its memory, MB | generator |\n|---|--:|--:|---|---|--:|--:|--:|--:|--:|--:|---|"
)


def measure(bench: SlowRun, count: int) -> list[str]:
    alone, first = bench.row("none", None)
    say(first)
    lines, worst = [HEAD, first], 0.0
    for kind in slow_clients.KINDS:
        with crowded(bench.place, kind, count, bench.tokens[-1]) as crowd:
            p99, line = bench.row(f"{count:,} that {kind}", crowd)
        say(line)
        lines.append(line)
        worst = max(worst, p99)
    again, last = bench.row("none, again", None)
    say(last)
    # A pause of the machine in one of the two must not make the goal easier.
    alone = min(alone, again)
    goal = "met" if worst <= 2 * alone else "**missed**"
    return [
        *lines,
        last,
        "",
        f"The worst p99 is {worst / alone:.2f} times the p99 without slow connections; the goal is at most 2: {goal}.",
    ]


def prepare(place: BenchService, where: dict[str, Any]) -> list[str]:
    """Make three merchants with approved orders, and one for the slow connections. Return their tokens."""
    tokens = []
    for number in range(MERCHANTS + 1):
        merchant = service.merchant(place, f"Shop {number}")
        tokens.append(service.token(place, merchant))
        if number < MERCHANTS:
            model = seed.approved_order(place.url, tokens[-1])
            asyncio.run(seed.fill(where, UUID(merchant["merchantId"]), model, POOL))
    return tokens


TITLE = "## Slow clients"
EXPLAINED = """\
The service ends a slow connection at its timeout ([running.md](running.md), "Limits of a connection"). This measurement shows how 2,000
slow connections affect the requests of other merchants.

{}

Latency is measured from the time at which a request was scheduled, no matter what happened to earlier requests. When the service ends a slow
connection, the generator opens a new one, at most a thousand a second, on the same two cores. A connection that reads nothing requests the
largest document 17 times.
"""


def say(text: str) -> None:
    print(f"slow: {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.slow", description=__doc__)
    parser.add_argument("--count", type=int, default=2_000, help="slow connections (default 2,000)")
    parser.add_argument("--rate", type=float, default=300.0, help="honest requests a second (default 300)")
    parser.add_argument("--dry", action="store_true", help="write nothing into docs/proof.md")
    options = parser.parse_args()
    started = time.monotonic()
    with _place() as (place, where), service.serving(place, 1) as web:
        bench = SlowRun(place, prepare(place, where), web, options.rate)
        bench.honest(WARM_SECONDS)
        lines = measure(bench, options.count)
        verified = service.cuota(place, "verify").strip()
    said = (
        f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by `python -m bench.slow` on {', '.join(report.machine())}, "
        f"with one worker process. `cuota verify` afterwards: {verified}"
    )
    text = "\n".join([said, "", *lines])
    print(f"\n{text}\n")
    if not options.dry:
        proof.write(TITLE, EXPLAINED.format(text))
    say(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
