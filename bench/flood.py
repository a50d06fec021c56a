"""An open-loop load generator: it sends requests at times that are fixed beforehand, whatever happens to earlier requests.

Reads a Flood as JSON from standard input and prints the result as JSON. A request uses an idle connection of its
sender. If none is idle, it opens another; if `MOST_OPEN` are open, it waits. Latency counts from the scheduled time.
`late_ms` is the delay of the generator behind its own schedule. If this delay is large, the numbers describe the
generator and not the service.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import resource
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, cast

import uvloop

from bench import work

MIX = (("create", 60), ("read", 25), ("capture", 15))
# The number of connections that are opened before the start, for each sender and in all: at most as many as a listening
# socket queues.
FIRST_OPEN, MOST_OPEN = 100, 2_000
# After this many seconds a request counts as unanswered.
PATIENCE = 10.0
# A 200 that comes later than this many seconds after its request was due is counted as late, and not as answered.
LATE = 2.0


@dataclass(frozen=True)
class Sender:
    """A merchant: its token, and how many requests a second it sends in each phase."""

    token: str
    rates: list[float]


@dataclass(frozen=True)
class Flood:
    """`phases` has the length of each phase in seconds. `pool` is the number of approved orders of each merchant."""

    port: int
    phases: list[float]
    senders: list[Sender]
    pool: int
    seed: int


class FloodTally:
    """The results of one sender's requests of one operation in one second."""

    def __init__(self) -> None:
        self.offered = self.refused = self.bare = self.late = self.other = 0
        self.latencies: list[float] = []

    def as_json(self) -> dict[str, Any]:
        rounded = [round(seconds * 1000, 1) for seconds in self.latencies]
        return {**vars(self), "latencies": rounded}


class FloodRun:
    """The state that the connections share."""

    def __init__(self, flood: Flood) -> None:
        self.flood = flood
        self.tallies: dict[tuple[int, str, int], FloodTally] = {}
        self.idle: list[list[FloodConnection]] = [[] for _ in flood.senders]
        self.waiting: list[deque[tuple[float, bytes, FloodTally]]] = [deque() for _ in flood.senders]
        self.heads = [work.head(sender.token) for sender in flood.senders]
        self.open = self.under_way = 0
        self.late: list[float] = []
        self.samples: dict[str, int] = {}
        self.opening: set[asyncio.Task[Any]] = set()

    def tally(self, sender: int, name: str, second: int) -> FloodTally:
        return self.tallies.setdefault((sender, name, second), FloodTally())

    async def connect(self, sender: int) -> None:
        self.open += 1
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(lambda: FloodConnection(self, sender), "127.0.0.1", self.flood.port)
        except OSError as problem:
            self.open -= 1
            self.note(repr(problem))

    def note(self, problem: str) -> None:
        self.samples[problem] = self.samples.get(problem, 0) + 1

    def send(self, sender: int, due: float, request: bytes, tally: FloodTally) -> None:
        self.under_way += 1
        if self.idle[sender]:
            self.idle[sender].pop().send(due, request, tally)
            return
        self.waiting[sender].append((due, request, tally))
        if self.open < MOST_OPEN:
            task = asyncio.get_running_loop().create_task(self.connect(sender))
            self.opening.add(task)
            task.add_done_callback(self.opening.discard)

    def free(self, connection: FloodConnection) -> None:
        queue = self.waiting[connection.sender]
        if queue:
            connection.send(*queue.popleft())
        else:
            self.idle[connection.sender].append(connection)


class FloodConnection(asyncio.Protocol):
    """One connection of one sender."""

    def __init__(self, run: FloodRun, sender: int) -> None:
        self.run, self.sender = run, sender
        self.received = b""
        self.asked: tuple[float, FloodTally] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.run.free(self)

    def send(self, due: float, request: bytes, tally: FloodTally) -> None:
        self.asked = due, tally
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.received = data = self.received + data if self.received else data
        head = data.find(b"\r\n\r\n")
        if head < 0:
            return
        at = data.find(b"content-length: ", 0, head)
        if len(data) < head + 4 + int(data[at + 16 : data.find(b"\r", at)]) or self.asked is None:
            return
        self.received = b""
        due, tally = self.asked
        self.asked = None
        self.run.under_way -= 1
        if data.startswith(b"HTTP/1.1 200 "):
            seconds = time.perf_counter() - due
            if seconds > LATE:
                tally.late += 1
            else:
                tally.latencies.append(seconds)
        elif data.startswith(b"HTTP/1.1 503 "):
            tally.refused += 1
            tally.bare += b"\r\nretry-after: " not in data[:head]
        else:
            tally.other += 1
            self.run.note(data[:60].decode(errors="replace"))
        self.run.free(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.run.open -= 1
        if self in self.run.idle[self.sender]:
            self.run.idle[self.sender].remove(self)
        if self.asked is not None:
            self.asked[1].other += 1
            self.run.under_way -= 1
            self.run.note(f"the connection was closed: {exc}")


def arrivals(flood: Flood) -> list[tuple[float, int, str]]:
    """Return the time and sender of each request. The times are independent of each other, like those of many customers."""
    chance = random.Random(flood.seed)
    names, weights = [name for name, _ in MIX], [weight for _, weight in MIX]
    found = []
    for index, sender in enumerate(flood.senders):
        began = 0.0
        for seconds, rate in zip(flood.phases, sender.rates, strict=True):
            at = began + chance.expovariate(rate) if rate else began + seconds
            while at < began + seconds:
                found.append((at, index, chance.choices(names, weights)[0]))
                at += chance.expovariate(rate)
            began += seconds
    return sorted(found)


def _request(name: str, number: int, head: bytes, flood: Flood) -> bytes:
    order = number % flood.pool + 1
    if name != "capture":
        return work.request(name, order, head)
    body = f'{{"amount":"1.00","merchantReference":"flood-{flood.seed}-{number}"}}'.encode()
    path = f"/order/{work.POOL_PREFIX}{order:012x}".encode()
    return b"POST %b/capture HTTP/1.1\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        path, head, len(body), body,
    )  # fmt: skip


def _due(run: FloodRun) -> Iterator[tuple[float, int, bytes, FloodTally]]:
    creations = [work.request("create", 0, head) for head in run.heads]
    for number, (at, sender, name) in enumerate(arrivals(run.flood)):
        tally = run.tally(sender, name, int(at))
        tally.offered += 1
        head = run.heads[sender]
        request = creations[sender] if name == "create" else _request(name, number, head, run.flood)
        yield at, sender, request, tally


async def _drive(flood: Flood) -> dict[str, Any]:
    run = FloodRun(flood)
    schedule = list(_due(run))
    # Nothing here becomes garbage, and a garbage collection would make the process late.
    gc.disable()
    for sender in range(len(flood.senders)):
        await asyncio.gather(*(run.connect(sender) for _ in range(FIRST_OPEN)))
    began, spent = time.perf_counter() + 0.1, time.process_time()
    for at, sender, request, tally in schedule:
        due = began + at
        while (wait := due - time.perf_counter()) > 0:  # noqa: ASYNC110 - the clock sets no event
            # The event loop treats a shorter sleep as no sleep at all, and would keep a core busy.
            await asyncio.sleep(max(wait, 0.001))
        run.late.append(time.perf_counter() - due)
        run.send(sender, due, request, tally)
        if len(run.late) % 16 == 0:
            # When the process is behind its schedule, it still reads answers.
            await asyncio.sleep(0)
    took = time.perf_counter() - began
    cpu = (time.process_time() - spent) / took
    until = time.perf_counter() + PATIENCE
    while run.under_way and time.perf_counter() < until:  # noqa: ASYNC110 - the same
        await asyncio.sleep(0.05)
    late = sorted(run.late)
    return {
        "tallies": [[*key, tally.as_json()] for key, tally in run.tallies.items()],
        "late_ms": late[len(late) * 99 // 100] * 1000,
        "took": took,
        "cpu": cpu,
        "unanswered": run.under_way,
        "connections": run.open,
        "problems": run.samples,
    }


def drive(flood: Flood) -> dict[str, Any]:
    """Run a flood in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.flood"], input=json.dumps(asdict(flood)), capture_output=True, text=True,
        check=False, timeout=sum(flood.phases) * 3 + 60,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"The flood process failed: {done.stderr.strip().splitlines()[-1]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    given = json.load(sys.stdin)
    senders = [Sender(**sender) for sender in given.pop("senders")]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(_drive(Flood(senders=senders, **given)))))


if __name__ == "__main__":
    main()
