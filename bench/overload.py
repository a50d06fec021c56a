"""`python -m bench.overload`: what is answered when more is asked than can be done. Under four minutes.

Ten merchants send 60 % creations, 25 % reads and 15 % captures at fixed times (bench/flood.py). First the rate at which
the service is full is found, then 1, 2, 5 and 10 times as much is sent; then one merchant sends ten times its share
beside nine honest ones; then a flood comes and goes. Prints a table and writes it into docs/proof.md.
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
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from bench import flood, proof, report, seed, service
from bench.flood import Flood, Sender
from bench.service import BenchService
from cuota.db.embedded.server import open_embedded

MERCHANTS = 10
POOL = 4_000  # approved orders of each merchant
FIRST, STEPS, MOST_STEPS, ENOUGH_KEPT = 1_000.0, (1.2, 1.05), 10, 0.98
STEP_SECONDS, LEVEL_SECONDS, REST_SECONDS = 3.0, 8.0, 1.0
# Load in multiples of saturation, and which part of the peak is to be left; None: measured only.
TIMES: dict[int, float | None] = {1: 0.9, 2: 0.9, 5: 0.8, 10: None}
# Beside the greedy merchant the others are to be well served, so together they leave room for a tenth of it.
EASE = 0.8
# A second is as before when nothing is refused in it and its p99 is at most this many times that before the flood.
AS_BEFORE, BEFORE, FLOODED, AFTER = 3.0, 4, 6, 10
QUIET = 1.0  # load average of a machine with nothing else to do
KINDS = tuple(name for name, _ in flood.MIX)


@dataclass
class Count:
    """What came of some requests."""

    offered: int = 0
    refused: int = 0
    bare: int = 0
    late: int = 0
    other: int = 0
    latencies: list[float] = field(default_factory=list)

    @property
    def good(self) -> int:
        return len(self.latencies)

    @property
    def kept(self) -> float:
        return self.good / max(self.offered, 1)

    def percentile(self, percent: int) -> float:
        ordered = sorted(self.latencies)
        return ordered[len(ordered) * percent // 100] if ordered else float("nan")


@dataclass(frozen=True)
class Came:
    """What came of a flood."""

    found: dict[str, Any]

    def count(
        self, *, sender: range | None = None, kinds: tuple[str, ...] = KINDS, seconds: range | None = None
    ) -> Count:
        total = Count()
        for by, name, second, tally in self.found["tallies"]:
            if name in kinds and (sender is None or by in sender) and (seconds is None or second in seconds):
                for what in ("offered", "refused", "bare", "late", "other"):
                    setattr(total, what, getattr(total, what) + tally[what])
                total.latencies += tally["latencies"]
        return total

    @property
    def generator(self) -> str:
        late = self.found["late_ms"]
        said = f"{late:.0f} ms late, {self.found['cpu']:.0%} of a core"
        return f"{said}: **it did not keep its schedule**" if late > 20 else said


@dataclass
class OverloadRun:
    """One run: whom it asks, and the lines that it has to tell."""

    place: BenchService
    tokens: list[str]
    floods: int = 0

    def send(self, rates: list[list[float]], phases: list[float]) -> Came:
        """`rates` by merchant and phase."""
        self.floods += 1
        senders = [Sender(token, by_phase) for token, by_phase in zip(self.tokens, rates, strict=True)]
        came = Came(flood.drive(Flood(self.place.port, phases, senders, POOL, self.floods)))
        if came.found["problems"] or came.found["unanswered"]:
            say(f"unanswered: {came.found['unanswered']}; else: {came.found['problems']}")
        time.sleep(REST_SECONDS)
        return came

    def evenly(self, rate: float, seconds: float) -> Came:
        return self.send([[rate / MERCHANTS]] * MERCHANTS, [seconds])


def tried(bench: OverloadRun, rate: float) -> Count:
    """What came of a step; of a second try where the first did not keep enough: a disk may pause in any three seconds."""
    for _ in range(2):
        count = bench.evenly(rate, STEP_SECONDS).count()
        say(
            f"{rate:,.0f} a second: {count.good / STEP_SECONDS:,.0f} answered, p99 {count.percentile(99):.0f} ms, "
            f"{count.refused} refused"
        )
        if count.kept >= ENOUGH_KEPT:
            break
    return count


def saturation(bench: OverloadRun) -> tuple[float, float]:
    """The rate up to which hardly anything is refused, and the most that was answered in a second on the way."""
    bench.evenly(FIRST / 2, STEP_SECONDS)  # what is made once, is made now
    rate, full, peak = FIRST, 0.0, 0.0
    for step in STEPS:
        rate = full * step or rate
        for _ in range(MOST_STEPS):
            count = tried(bench, rate)
            peak = max(peak, count.good / STEP_SECONDS)
            if count.kept >= ENOUGH_KEPT:
                full, rate = rate, rate * step
            elif full:
                break
            else:
                rate /= step**2
    return full or rate, peak or rate


LEVELS = (
    "| load | offered/s | answered/s | of the peak | goal | p50 ms | p99 ms | refused | captures kept | reads kept "
    "| creations kept | refusals without Retry-After | late | anything else | generator |\n"
    "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
)


def levels(bench: OverloadRun, full: float, peak: float) -> tuple[list[str], float]:
    """The lines, and the most that was answered in a second at any load."""
    found = {times: bench.evenly(full * times, LEVEL_SECONDS) for times in TIMES}
    goodput = {times: came.count().good / LEVEL_SECONDS for times, came in found.items()}
    peak = max(peak, *goodput.values())
    lines = [LEVELS]
    for times, came in found.items():
        count = came.count()
        goal = TIMES[times]
        kept = " | ".join(f"{came.count(kinds=(kind,)).kept:.0%}" for kind in ("capture", "read", "create"))
        lines.append(
            f"| {times} x | {count.offered / LEVEL_SECONDS:,.0f} | {goodput[times]:,.0f} | {goodput[times] / peak:.0%} "
            f"| {'none' if goal is None else f'{goal:.0%}'} | {count.percentile(50):.0f} | {count.percentile(99):.0f} "
            f"| {count.refused / count.offered:.0%} | {kept} | {count.bare} | {count.late} | {count.other} | {came.generator} |"
        )
        say(lines[-1])
    return lines, peak


GREEDY = (
    "| nine honest merchants beside | their offered/s | answered/s | kept | p50 ms | p99 ms | the tenth: offered/s "
    "| answered/s | kept | generator |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"
)


def greedy(bench: OverloadRun, full: float) -> list[str]:
    share, lines = full * EASE / MERCHANTS, [GREEDY]
    for name, times in (("a tenth at its share", 1), ("a tenth at ten times its share", 10)):
        rates = [[share]] * (MERCHANTS - 1) + [[share * times]]
        came = bench.send(rates, [LEVEL_SECONDS])
        honest, tenth = (
            came.count(sender=range(MERCHANTS - 1)),
            came.count(sender=range(MERCHANTS - 1, MERCHANTS)),
        )
        lines.append(
            f"| {name} | {honest.offered / LEVEL_SECONDS:,.0f} | {honest.good / LEVEL_SECONDS:,.0f} | {honest.kept:.2%} "
            f"| {honest.percentile(50):.0f} | {honest.percentile(99):.0f} | {tenth.offered / LEVEL_SECONDS:,.0f} "
            f"| {tenth.good / LEVEL_SECONDS:,.0f} | {tenth.kept:.0%} | {came.generator} |"
        )
        say(lines[-1])
    return lines


def recovery(bench: OverloadRun, full: float) -> list[str]:
    """Half of what it can do, then ten times that, then half again; when is a second as before?"""
    rates = [full / 2 / MERCHANTS, full * 10 / MERCHANTS, full / 2 / MERCHANTS]
    came = bench.send([rates] * MERCHANTS, [float(BEFORE), float(FLOODED), float(AFTER)])
    before = came.count(seconds=range(1, BEFORE)).percentile(99)
    normal = None
    told = []
    for second in range(AFTER):
        at = BEFORE + FLOODED + second
        count = came.count(seconds=range(at, at + 1))
        told.append(f"{count.percentile(99):.0f} ms, {count.refused} refused")
        lost = count.refused + count.late + count.other
        fine = not lost and count.percentile(99) <= max(before, 10.0) * AS_BEFORE
        normal = (second if normal is None else normal) if fine else None
    say(f"p99 before the flood {before:.0f} ms; seconds after it: {'; '.join(told)}")
    found = f"{normal} s" if normal is not None else f"**not within {AFTER} s**"
    return [
        (
            f"After {FLOODED} s of ten times saturation, back to half of it: as before (nothing refused in a second, its "
            f"p99 at most {AS_BEFORE:g} times the {before:.0f} ms before the flood) after {found}; the goal is 5 s. "
            f"Generator: {came.generator}."
        )
    ]


def say(text: str) -> None:
    print(f"overload: {text}", flush=True)


def prepare(place: BenchService, where: dict[str, Any]) -> list[str]:
    """Ten merchants, each with approved orders to read and to capture; answers their tokens."""
    tokens = []
    for number in range(MERCHANTS):
        merchant = service.merchant(place, f"Shop {number}")
        tokens.append(service.token(place, merchant))
        model = seed.approved_order(place.url, tokens[-1])
        asyncio.run(seed.fill(where, UUID(merchant["merchantId"]), model, POOL))
    say(f"{MERCHANTS} merchants with {POOL:,} approved orders each")
    return tokens


@contextmanager
def _place() -> Iterator[tuple[BenchService, dict[str, Any]]]:
    """A folder that the unprivileged user of the embedded PostgreSQL may reach, and a PostgreSQL in it."""
    folder = Path(tempfile.mkdtemp(prefix="cuota-bench-"))
    folder.chmod(0o711)
    place = BenchService(folder / "data", service.free_port())
    try:
        with open_embedded(place.data) as embedded:
            yield place, dict(embedded.dsn_kwargs)
        until = time.monotonic() + 60
        while (place.data / "pg" / "postmaster.pid").exists() and time.monotonic() < until:
            time.sleep(0.2)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


TITLE = "## Overload"
EXPLAINED = """\
What is asked past what can be done is refused before any work: 503 with `Retry-After`, nothing applied
([running.md](running.md), "Overload").

{}

How to read it:

- Open loop: every request has its time, whatever became of those before, and latency counts from that time. Arrivals are
  independent of each other, from ten merchants alike. p50 and p99 are of what was answered 200. A 200 that comes more than
  2 seconds after its time counts as late, and not as answered.
- Saturation is the last step of a ramp (each a fifth more, then a twentieth) of which at least 98 % was answered, at the
  second try if not at the first; the peak is the most that was answered in a second at any step or at any load below.
- Every request that is refused was read and parsed first. The higher the load, the more of the process's time goes into
  that. More workers share it; a proxy in front that limits rates keeps it away
  ([decisions/overload.md](decisions/overload.md), "What a flood costs").
- The generator runs on the same cores as the service and its PostgreSQL, and takes from both what its column says: at ten
  times that is no longer little. A process that is sent ten times what it can do also spends the time to read and refuse it.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.overload", description=__doc__)
    parser.add_argument("--workers", type=int, default=1, help="processes of the service (default 1)")
    parser.add_argument("--dry", action="store_true", help="write nothing into docs/proof.md")
    parser.add_argument("--full", type=float, help="take this as saturation and as the peak")
    options = parser.parse_args()
    started, before = time.monotonic(), os.getloadavg()[0]
    with _place() as (place, where), service.serving(place, options.workers):
        bench = OverloadRun(place, prepare(place, where))
        full, peak = (options.full, options.full) if options.full else saturation(bench)
        lines, peak = levels(bench, full, peak)
        tables = [lines, greedy(bench, full), recovery(bench, full)]
        verified = service.cuota(place, "verify").strip()
    said = (
        f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by `python -m bench.overload` on {', '.join(report.machine())}, "
        f"with {options.workers} worker process. Saturation is {full:,.0f} requests a second, the peak {peak:,.0f}. Load average of "
        f"the machine: {before:.1f} before, {os.getloadavg()[0]:.1f} after (one minute each).{' **Others were at work on it: take these figures again.**' if before > QUIET else ''} "
        f"`cuota verify` afterwards: {verified}"
    )
    text = "\n\n".join([said, *("\n".join(lines) for lines in tables)])
    print(f"\n{text}\n")
    if not options.dry:
        proof.write(TITLE, EXPLAINED.format(text))
    say(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
