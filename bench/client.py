"""The load generator: a separate process with a small HTTP/1.1 client that uses so little CPU that it does not distort the result.

Reads a LoadJob as JSON from standard input and prints a Measured as JSON. Each client uses one connection and sends its next
request when it has the previous answer (closed loop). Any status other than 200 ends the run, because a refusal is faster than
real work.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import cast

import uvloop

from bench import work

# If a run has not ended this many seconds after its planned end, the service does not answer.
PATIENCE = 20.0
LEAP = 15_485_863


@dataclass(frozen=True)
class LoadJob:
    """The requests to send, for numbers `first` to `first + count - 1` of the pool, each once; with `cycle` they start again.

    With `spread`, the numbers are taken in leaps over a pool of `spread` orders, so that no two neighbors follow each
    other; the pool begins after `base`, and orders up to `above` are skipped. `credentials` is the body of a token
    request. `names` are the ids in localstripe's pool; with them, the requests go to localstripe.
    """

    work: str
    port: int
    token: str
    clients: int
    warm: float
    seconds: float
    first: int
    count: int
    cycle: bool
    credentials: str = ""
    names: tuple[str, ...] = ()
    spread: int = 0
    above: int = 0
    base: int = 0


@dataclass(frozen=True)
class Measured:
    """`rps`, `p50_ms` and `p99_ms` count the answers after the warm-up; `answers` counts all answers, with the warm-up."""

    rps: float
    p50_ms: float
    p99_ms: float
    answers: int
    seconds: float


class Load:
    """The state that the clients of one run share."""

    def __init__(self, job: LoadJob) -> None:
        numbers: Iterable[int] = range(job.first, job.first + job.count)
        if job.spread:
            # No pool size is a multiple of this prime, so each number comes once before any number repeats.
            leaps = (job.base + number * LEAP % job.spread + 1 for number in numbers)
            numbers = [number for number in leaps if number > job.above]
        self.job = job
        self.numbers: Iterator[int] = itertools.cycle(numbers) if job.cycle else iter(numbers)
        self.head = work.head(job.token)
        self.done = asyncio.get_running_loop().create_future()
        self.begin = time.perf_counter() + job.warm
        self.end = self.begin + job.seconds
        self.last = self.begin
        self.latencies: list[float] = []
        self.answers = 0
        self.open = job.clients

    def next(self) -> bytes | None:
        """Return the next request, or None when the time is over or the pool is used up."""
        if time.perf_counter() >= self.end:
            return None
        number = next(self.numbers, None)
        if number is None:
            return None
        if self.job.names:
            return work.localstripe_request(self.job.work, self.job.names[number], self.head)
        return work.request(self.job.work, number, self.head, self.job.credentials)

    def close(self, problem: str | None = None) -> None:
        """Record that one client has finished."""
        self.open -= 1
        if self.done.done():
            return
        if problem is not None:
            self.done.set_exception(RuntimeError(problem))
        elif self.open == 0:
            self.done.set_result(None)


class LoadClient(asyncio.Protocol):
    """One connection."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.received = b""
        self.ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self.transport = cast("asyncio.Transport", transport)
        self.send()

    def send(self) -> None:
        request = self.load.next()
        if request is None:
            self.finish()
            return
        self.sent = time.perf_counter()
        self.transport.write(request)

    def finish(self, problem: str | None = None) -> None:
        if not self.ended:
            self.ended = True
            self.load.close(problem)
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        self.received = data = self.received + data if self.received else data
        head = data.find(b"\r\n\r\n")
        if head < 0:
            return
        at = data[:head].lower().find(b"content-length: ")
        if len(data) < head + 4 + int(data[at + 16 : data.find(b"\r", at)]):
            return
        now = time.perf_counter()
        if not data.startswith(b"HTTP/1.1 200 "):
            self.finish(f"{self.load.job.work} was answered {data.decode(errors='replace')[:1000]}")
            return
        self.received = b""
        self.load.answers += 1
        if self.load.begin <= now <= self.load.end:
            self.load.last = now
            self.load.latencies.append(now - self.sent)
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        self.finish(f"the service closed the connection: {exc}")


async def _drive(job: LoadJob) -> Measured:
    loop = asyncio.get_running_loop()
    load = Load(job)
    for _ in range(job.clients):
        await loop.create_connection(lambda: LoadClient(load), "127.0.0.1", job.port)
    async with asyncio.timeout(job.warm + job.seconds + PATIENCE):
        await load.done
    latencies = sorted(load.latencies)
    assert latencies, "no answer came after the warm-up: the pool is too small, or the service too slow"
    seconds = load.last - load.begin
    return Measured(
        rps=len(latencies) / seconds,
        p50_ms=latencies[len(latencies) // 2] * 1000,
        p99_ms=latencies[len(latencies) * 99 // 100] * 1000,
        answers=load.answers,
        seconds=seconds,
    )


def drive(job: LoadJob) -> Measured:
    """Run a job in a separate process."""
    command = [sys.executable, "-m", "bench.client"]
    done = subprocess.run(
        command, input=json.dumps(asdict(job)), capture_output=True, text=True, check=False, timeout=120
    )
    if done.returncode:
        raise RuntimeError(f"The load process failed: {done.stderr.strip().splitlines()[-1]}")
    return Measured(**json.loads(done.stdout))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(asdict(runner.run(_drive(LoadJob(**json.load(sys.stdin)))))))
