"""`python -m bench.overload`: measures how many requests are answered when more arrive than the service can handle.

Ten merchants send 60 % creations, 25 % reads and 15 % captures at fixed times (bench/flood.py). First the benchmark finds
the rate at which the service is full. Then it sends 1, 2, 5 and 10 times that rate. Then one merchant sends ten times its
share beside nine others. Then a flood starts and stops. Writes a table into docs/proof.md, within six minutes.
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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from bench import flood, proof, report, seed, service
from bench.flood import Flood, Sender
from bench.flood_results import Came, Count
from bench.service import BenchService
from cuota.db.embedded.server import open_embedded

MERCHANTS = 10
POOL = 4_000  # approved orders of each merchant
FIRST, STEPS, MOST_STEPS, ENOUGH_KEPT = 1_000.0, (1.2, 1.05), 10, 0.98
# A step of the ramp is as long as a level: many rates can be kept for three seconds, and not for eight.
LEVEL_SECONDS, REST_SECONDS = 8.0, 1.0
# The load in multiples of saturation, and the share of the peak that must still be answered (None: only measured).
TIMES: dict[int, float | None] = {1: 0.9, 2: 0.9, 5: 0.8, 10: None}
# The service should still serve the other merchants well, so their load leaves room for the greedy merchant's share.
EASE = 0.8
# A second counts as normal if no request is refused in it and its p99 is at most this many times the p99 before the
# flood.
AS_BEFORE, BEFORE, FLOODED, AFTER = 3.0, 4, 6, 10
QUIET = 1.0  # the highest load average of an idle machine


@dataclass
class OverloadRun:
    """One run: the service that it measures, and the lines of its report."""

    place: BenchService
    where: dict[str, Any]
    tokens: list[str]
    floods: int = 0

    def send(self, rates: list[list[float]], phases: list[float]) -> Came:
        """Run one flood. `rates` has the requests a second by merchant and phase."""
        self.floods += 1
        senders = [Sender(token, by_phase) for token, by_phase in zip(self.tokens, rates, strict=True)]
        came = Came(flood.drive(Flood(self.place.port, phases, senders, POOL, self.floods)))
        if came.found["problems"] or came.found["unanswered"]:
            say(f"unanswered: {came.found['unanswered']}; else: {came.found['problems']}")
        time.sleep(REST_SECONDS)
        # Otherwise publishing the events of this flood would count for the next one.
        asyncio.run(service.events_published(self.where))
        return came

    def evenly(self, rate: float) -> Came:
        """Send this many requests a second for the time of one level."""
        return self.send([[rate / MERCHANTS]] * MERCHANTS, [LEVEL_SECONDS])


def tried(bench: OverloadRun, rate: float) -> Count:
    """Return the results of one step. Repeat a bad step once, because the disk may pause at any moment."""
    for _ in range(2):
        count = bench.evenly(rate).count()
        say(
            f"{rate:,.0f} a second: {count.good / LEVEL_SECONDS:,.0f} answered, p99 {count.percentile(99):.0f} ms, "
            f"{count.refused} refused"
        )
        if count.kept >= ENOUGH_KEPT:
            break
    return count


def saturation(bench: OverloadRun) -> float:
    """Raise the rate until requests are refused. Return the most answers a second of any step."""
    bench.evenly(FIRST / 2)  # create everything now that is created only once
    rate, full, peak = FIRST, 0.0, 0.0
    for step in STEPS:
        rate = full * step or rate
        for _ in range(MOST_STEPS):
            count = tried(bench, rate)
            peak = max(peak, count.good / LEVEL_SECONDS)
            if count.kept >= ENOUGH_KEPT:
                full, rate = rate, rate * step
            elif full:
                break
            else:
                rate /= step**2
    return peak or rate


LEVELS = (
    "| load | sent/s | answered/s | of the peak | goal | p50 ms | p99 ms | refused | captures kept | reads kept "
    "| creations kept | refusals without Retry-After | late | other results | generator |\n"
    "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
)


def levels(bench: OverloadRun, full: float) -> tuple[list[str], float]:
    """Return the lines of the table, and the most answers a second at any load."""
    found = {times: bench.evenly(full * times) for times in TIMES}
    goodput = {times: came.count().good / LEVEL_SECONDS for times, came in found.items()}
    peak = max(full, *goodput.values())
    lines = [LEVELS]
    for times, came in found.items():
        count = came.count()
        goal, share = TIMES[times], goodput[times] / peak
        wanted = "none" if goal is None else f"{goal:.0%}, {'met' if share >= goal else 'missed'}"
        kept = " | ".join(f"{came.count(kinds=(kind,)).kept:.0%}" for kind in ("capture", "read", "create"))
        lines.append(
            f"| {times} x | {count.offered / LEVEL_SECONDS:,.0f} | {goodput[times]:,.0f} | {share:.0%} "
            f"| {wanted} | {count.percentile(50):.0f} | {count.percentile(99):.0f} "
            f"| {count.refused / count.offered:.0%} | {kept} | {count.bare} | {count.late} | {count.other} | {came.generator} |"
        )
        say(lines[-1])
    return lines, peak


GREEDY = (
    "| nine honest merchants, while the tenth sends | they send/s | answered/s | kept | p50 ms | p99 ms | the tenth sends/s "
    "| answered/s | kept | generator |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"
)


def greedy(bench: OverloadRun, full: float) -> list[str]:
    share, lines = full * EASE / MERCHANTS, [GREEDY]
    for name, times in (("its share", 1), ("ten times its share", 10)):
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
    """Send half of the saturation rate, then ten times that rate, then half again. Return a sentence about the recovery."""
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
            f"After {FLOODED} s at ten times saturation, the load falls back to half of saturation. The service is back to "
            f"normal after {found} (no refusal in a second, and a p99 of at most {AS_BEFORE:g} times the {before:.0f} ms before "
            "the flood); the goal is 5 s. "
            f"Generator: {came.generator}."
        )
    ]


def say(text: str) -> None:
    print(f"overload: {text}", flush=True)


def prepare(place: BenchService, where: dict[str, Any]) -> list[str]:
    """Make ten merchants, each with approved orders to read and capture. Return their tokens."""
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
    """Make a folder that the unprivileged user of the embedded PostgreSQL may enter, and start PostgreSQL in it."""
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
The service refuses requests beyond its capacity before it does any work for them: 503 with `Retry-After`, nothing applied
([running.md](running.md), "Overload").

{}

How to read the tables:

- Each request is sent at a scheduled time, no matter what happens to earlier requests (open loop). Latency is measured from that time. Ten
  equal merchants send requests independently of each other. p50 and p99 count answers 200 within 2 seconds; later ones are "late".
- Saturation is the highest number of answers a second in any step of a ramp. The load grows by 20 %, later by 5 %, until less than 98 % of
  the requests are answered 200 (such a step is tried once more). The peak is the most answers a second in any step or level. Each step and
  level takes {:g} seconds and begins when all events of the previous one are published.
- "Kept" is the share of the requests that were answered 200 in time. The last column shows how late the generator was.
- The service reads the head of every request before it refuses the request. This takes 35 microseconds, of which two system calls take 10. So
  refusals take more of the service's time at a higher load. More workers share this cost; a proxy in front with a rate limit avoids it
  ([decisions/overload.md](decisions/overload.md)).
- The generator runs on the same cores as the service and its PostgreSQL. At ten times saturation, the generator uses much of these cores.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.overload", description=__doc__)
    parser.add_argument("--workers", type=int, default=1, help="processes of the service (default 1)")
    parser.add_argument("--dry", action="store_true", help="write nothing into docs/proof.md")
    parser.add_argument("--full", type=float, help="take this rate as saturation")
    options = parser.parse_args()
    started, before = time.monotonic(), os.getloadavg()[0]
    with _place() as (place, where), service.serving(place, options.workers):
        bench = OverloadRun(place, where, prepare(place, where))
        full = options.full or saturation(bench)
        lines, peak = levels(bench, full)
        tables = [lines, greedy(bench, full), recovery(bench, full)]
        verified = service.cuota(place, "verify").strip()
    said = (
        f"Measured {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by `python -m bench.overload` on {', '.join(report.machine())}, "
        f"with {options.workers} worker process. Saturation is {full:,.0f} requests a second, the peak {peak:,.0f}. Load average of "
        f"the machine: {before:.1f} before, {os.getloadavg()[0]:.1f} after (one minute each).{' **Other programs were running, so repeat this measurement.**' if before > QUIET else ''} "
        f"`cuota verify` afterwards: {verified}"
    )
    text = "\n\n".join([said, *("\n".join(lines) for lines in tables)])
    print(f"\n{text}\n")
    if not options.dry:
        proof.write(TITLE, EXPLAINED.format(text, LEVEL_SECONDS))
    say(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
