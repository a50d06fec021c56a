"""`python -m bench.webhooks`: measures how soon after the commit webhooks arrive at a steady rate, and how many are sent a second.

Orders are created through the service. One endpoint, in a separate process, records when each event arrived.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import uvloop

from bench import service, work
from bench.client import LoadJob, drive
from bench.service import BenchService
from cuota.db.embedded.server import open_embedded

RATE = 200
CALLERS = 8
PATIENCE = 60.0
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


class Hook(asyncio.Protocol):
    """One connection of the receiver. It acknowledges at once and prints the event id and the time of arrival."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self.received = data = self.received + data
        head = data.find(b"\r\n\r\n")
        if head < 0:
            return
        at = data.lower().find(b"content-length: ", 0, head)
        if len(data) < head + 4 + int(data[at + 16 : data.find(b"\r", at)]):
            return
        at = data.find(b"webhook-id: ", 0, head)
        print(data[at + 12 : data.find(b"\r", at)].decode(), now, flush=True)
        self.received = b""
        self.transport.write(ANSWER)


async def receive(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Hook, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


@contextlib.contextmanager
def receiving(folder: Path) -> Iterator[tuple[str, Path]]:
    """Return the receiver's address, and the file that lists the arrivals."""
    port, came = service.free_port(), folder / "came"
    with came.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.webhooks", "--receive", str(port)], stdout=out
        )
        try:
            yield f"http://127.0.0.1:{port}/hooks", came
        finally:
            process.terminate()
            process.wait(10)


async def steadily(place: BenchService, token: str, seconds: float) -> None:
    """Create RATE orders a second, at fixed times, however long the answers take."""
    began, count = time.perf_counter(), int(RATE * seconds)
    request = work.request("create", 0, work.head(token))

    async def caller(first: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
        for number in range(first, count, CALLERS):
            await asyncio.sleep(began + number / RATE - time.perf_counter())
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 "), head
            at = head.find(b"content-length: ")
            await reader.readexactly(int(head[at + 16 : head.find(b"\r", at)]))
        writer.close()

    await asyncio.gather(*(caller(first) for first in range(CALLERS)))


@dataclass(frozen=True)
class DeliveryTimes:
    """The seconds from commit to arrival, sorted, and the arrivals a second without the first and last twentieth."""

    waits: list[float]
    rate: float

    def __str__(self) -> str:
        half, most = (1000 * self.waits[len(self.waits) * part // 100] for part in (50, 99))
        return f"{len(self.waits)} events: median {half:.0f} ms, p99 {most:.0f} ms, {self.rate:.0f} a second"


async def found(where: dict[str, Any], came: Path, after: float) -> DeliveryTimes:
    """Return the arrivals of the events committed after a moment. Waits until all of them have arrived."""
    owner = await asyncpg.connect(**where)
    try:
        rows = await owner.fetch(
            "SELECT 'evt_' || replace(order_id::text, '-', '') || '_' || sequence AS id,"
            " extract(epoch FROM created_at)::float8 AS at FROM events WHERE created_at > to_timestamp($1)",
            after,
        )
    finally:
        await owner.close()
    committed = {row["id"]: row["at"] for row in rows}
    until = time.monotonic() + PATIENCE
    while True:
        lines = [line.split() for line in came.read_text().splitlines() if line.count(" ") == 1]  # noqa: ASYNC240 - nothing else runs
        arrived = {name: float(at) for name, at in reversed(lines) if name in committed}
        if len(arrived) == len(committed):
            break
        assert time.monotonic() < until, f"{len(committed) - len(arrived)} events never came"
        await asyncio.sleep(0.2)
    times = sorted(arrived.values())
    some = times[len(times) // 20 : -len(times) // 20]
    waits = sorted(arrived[name] - at for name, at in committed.items())
    return DeliveryTimes(waits, (len(some) - 1) / (some[-1] - some[0]))


def run(place: BenchService, where: dict[str, Any], folder: Path, seconds: float) -> None:
    merchant = json.loads(service.cuota(place, "merchant", "create", "--name", "Bench", "--json"))
    with receiving(folder) as (url, came), service.serving(place, 1):
        token = service.token(place, merchant)
        headers = {"Authorization": f"Bearer {token}"}
        httpx.post(
            f"{place.url}/webhook-endpoints", json={"url": url}, headers=headers, trust_env=False
        ).raise_for_status()
        asyncio.run(steadily(place, token, 2))
        time.sleep(1)
        began = time.time()
        asyncio.run(steadily(place, token, seconds))
        print(f"bench: {RATE} orders a second: {asyncio.run(found(where, came, began))}", flush=True)
        began = time.time()
        drive(LoadJob("create", place.port, token, 32, 0, seconds, 1, 10**6, cycle=False))
        print(f"bench: as fast as 32 clients can: {asyncio.run(found(where, came, began))}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.webhooks", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="how long each part is measured (default 5)"
    )
    parser.add_argument("--receive", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.receive:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(receive(asked.receive))
        return
    folder = Path(tempfile.mkdtemp(prefix="cuota-bench-"))
    folder.chmod(0o711)
    try:
        place = BenchService(folder / "data", service.free_port())
        with open_embedded(place.data) as embedded:
            run(place, dict(embedded.dsn_kwargs), folder, asked.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
