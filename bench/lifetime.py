"""`python -m bench.lifetime`: measures the CPU time and the bytes of one order in its whole life. Writes
bench/lifetime.json.

Each order is created, read twice, taken through the hosted checkout, captured, and collected over six weeks; each of
its events goes to a receiver. Then the clock moves past every retention period, and the product deletes what it does not keep
forever. Every step uses the real product. The bytes are those of the rows and their indexes, without free space. Takes less than
fifteen minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from bench import report, service
from bench.webhooks import receiving
from cuota.commands.checkout_walker import walk
from cuota.db.embedded.server import open_embedded

OUT = Path(__file__).parent / "lifetime.json"
WIDE = Path(__file__).parents[1] / "tests" / "wide.toml"
THREADS = 8
_SIZES = """SELECT c.relname AS name, pg_total_relation_size(c.oid) AS bytes FROM pg_class c
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"""
# Longer than the longest retention period of these rows (CUOTA_KEEP_MESSAGES_DAYS, 760 days).
RETENTION = "800d"
# The months after which old rows are deleted (docs/retention.md). All other rows stay. These rows end by the service's clock.
BY_SERVICE_CLOCK = {"messages": 25, "delivery_attempts": 3, "signals": 2}
# These rows end by the real clock, which the sandbox cannot move.
BY_REAL_CLOCK = {"remembered_browsers": 3, "checkout_sessions": 1, "codes_sent": 0}
_OLD = " UNION ALL ".join(f"(SELECT 1 FROM {name} LIMIT 1)" for name in BY_SERVICE_CLOCK)
_WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"


class LenientService(service.BenchService):
    """A service with a policy that declines no order, because the same few shoppers return much faster than in reality."""

    @property
    def settings(self) -> dict[str, str]:
        return {**super().settings, "CUOTA_POLICY": str(WIDE)}


@dataclass
class OrderDriver:
    """The merchant that creates orders, and takes them through the checkout."""

    http: httpx.Client
    hooks: str

    def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        return dict(self.http.request(method, path, json=body).raise_for_status().json())

    def create(self, number: int) -> dict[str, Any]:
        urls = {"redirectConfirmUrl": "http://127.0.0.1:9/yes", "redirectCancelUrl": "http://127.0.0.1:9/no"}
        item = {"name": "A pair of shoes", "sku": "S-1", "quantity": 1, "price": 100}
        body = {
            "amount": 100,
            "merchantReference": f"A-{number}",
            "merchant": {**urls, "statusCallbackUrl": self.hooks},
            "items": [item],
        }
        return self.call("POST", "/order", body)

    def read(self, order: dict[str, Any]) -> None:
        self.call("GET", f"/order/{order['orderId']}")

    def check_out(self, order: dict[str, Any]) -> None:
        number = int(order["orderId"].replace("-", ""), 16)
        walk(order["redirectUrl"], "approved", phone=f"212{200 + number % 800}{number // 800 % 10_000:04d}")

    def capture(self, order: dict[str, Any]) -> None:
        self.call("POST", f"/order/{order['orderId']}/capture", {"amount": 100, "merchantReference": "whole"})


class Meter:
    """The CPU seconds of web and PostgreSQL between two readings."""

    def __init__(self, place: LenientService, web: list[Any], orders: int) -> None:
        self._place, self._web, self._orders = place, web, orders
        self.found: dict[str, dict[str, float]] = {}

    @contextmanager
    def step(self, name: str, *, less: float = 0.0) -> Iterator[None]:
        """Record the milliseconds per order of the block. `less` is subtracted: the cost of a command that does nothing."""
        before = self._look()
        yield
        after = self._look()
        web, postgres = (1000 * (then - now) / self._orders for now, then in zip(before, after, strict=True))
        self.found[name] = {
            "web_ms": round(web - 1000 * less / self._orders, 3),
            "postgres_ms": round(postgres, 3),
        }
        print(f"{name}: {self.found[name]}", flush=True)

    def _look(self) -> tuple[float, float]:
        commands = resource.getrusage(resource.RUSAGE_CHILDREN)
        web = service.cpu_seconds(self._web) + commands.ru_utime + commands.ru_stime
        return web, service.postgres_cpu_seconds(self._place)


def _idle(place: LenientService) -> float:
    """Return the CPU seconds of a command that has nothing to do."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    service.cuota(place, "time")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def _ask(where: dict[str, Any], *, count: int = 0) -> tuple[dict[str, int], int]:
    """Return the bytes of each table with its indexes, and of the WAL.

    With `count`, first waits until all events are delivered.
    """
    connection = await asyncpg.connect(**where)
    try:
        until = time.monotonic() + 120
        while count and await connection.fetchval("SELECT count(*) FROM deliveries WHERE state = 'pending'"):
            assert time.monotonic() < until, "the receiver was not told everything"
            await asyncio.sleep(0.5)
        sizes = {row["name"]: int(row["bytes"]) for row in await connection.fetch(_SIZES)}
        return sizes, int(await connection.fetchval(_WAL))
    finally:
        await connection.close()


async def _deleted(where: dict[str, Any]) -> int:
    """Wait until the background jobs have deleted the old rows; one of them runs every five minutes. Return the bytes of WAL."""
    connection = await asyncpg.connect(**where)
    try:
        before = int(await connection.fetchval(_WAL))
        until = time.monotonic() + 600
        while await connection.fetchval(_OLD):
            assert time.monotonic() < until, "the old rows were not deleted"
            await asyncio.sleep(1)
        return int(await connection.fetchval(_WAL)) - before
    finally:
        await connection.close()


async def _maintain(where: dict[str, Any], command: str) -> int:
    """Do what autovacuum does within a minute, but outside of the measured steps. Return the bytes of WAL that this wrote.

    VACUUM FULL also gives free space back.
    """
    connection = await asyncpg.connect(**where)
    try:
        before = int(await connection.fetchval(_WAL))
        await connection.execute(command)
        return int(await connection.fetchval(_WAL)) - before
    finally:
        await connection.close()


def measure(place: LenientService, where: dict[str, Any], hooks: str, orders: int) -> dict[str, Any]:
    """Take this many orders through their whole life, step by step."""
    made = service.merchant(place)
    with service.serving(place, 1) as web, ThreadPoolExecutor(THREADS) as threads:
        headers = {"Authorization": f"Bearer {service.token(place, made)}"}
        http = httpx.Client(base_url=place.url, headers=headers, trust_env=False, timeout=60)
        shop = OrderDriver(http, hooks)
        shop.check_out(shop.create(0))
        idle = _idle(place)
        asyncio.run(_ask(where, count=1))
        asyncio.run(_maintain(where, "VACUUM (FULL)"))
        sizes, wal = asyncio.run(_ask(where))
        meter = Meter(place, web, orders)
        with meter.step("create"):
            created = list(threads.map(shop.create, range(1, orders + 1)))
        wal += asyncio.run(_maintain(where, "VACUUM (ANALYZE)"))
        with meter.step("two reads"):
            list(threads.map(shop.read, created * 2))
        with meter.step("checkout"):
            list(threads.map(shop.check_out, created))
        wal += asyncio.run(_maintain(where, "VACUUM (ANALYZE)"))
        with meter.step("capture, and its webhooks"):
            list(threads.map(shop.capture, created))
            asyncio.run(_ask(where, count=orders))
        with meter.step("six weeks: collection, messages", less=idle):
            service.cuota(place, "time", "advance", "43d")
        asyncio.run(_ask(where, count=orders))
        _, wal_after = asyncio.run(_ask(where))
        asyncio.run(_maintain(where, "VACUUM (FULL)"))
        grown, _ = asyncio.run(_ask(where))
        service.cuota(place, "time", "advance", RETENTION)
        wal_of_retention = asyncio.run(_deleted(where))
        http.close()
    asyncio.run(_maintain(where, "VACUUM (FULL)"))
    left, _ = asyncio.run(_ask(where))
    kept = {name: size for name, size in left.items() if name not in BY_REAL_CLOCK}
    return {
        "measured": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": report.machine(),
        "orders": orders,
        "steps": meter.found,
        "bytes": _of_each_order(grown, sizes, orders),
        "bytes_after_retention": _of_each_order(kept, sizes, orders),
        "wal_bytes": round((wal_after - wal) / orders),
        "wal_bytes_of_retention": round(wal_of_retention / orders),
    }


def _of_each_order(after: dict[str, int], before: dict[str, int], orders: int) -> dict[str, int]:
    """Return by how many bytes each table has grown per order, the largest first."""
    grown = {name: round((size - before.get(name, 0)) / orders) for name, size in after.items()}
    return dict(sorted(((name, size) for name, size in grown.items() if size > 0), key=lambda pair: -pair[1]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.lifetime", description=__doc__)
    parser.add_argument("--orders", type=int, default=400)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cuota-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        place = LenientService(folder / "data", service.free_port())
        with open_embedded(place.data) as embedded, receiving(folder) as (hooks, _):
            found = measure(place, dict(embedded.dsn_kwargs), hooks, options.orders)
            print(service.cuota(place, "verify").strip())
        OUT.write_text(json.dumps(found, indent=1) + "\n")
        until = time.monotonic() + 60
        while (place.data / "pg" / "postmaster.pid").exists() and time.monotonic() < until:
            time.sleep(0.2)
    print(json.dumps({name: found[name] for name in ("bytes", "bytes_after_retention", "wal_bytes")}))


if __name__ == "__main__":
    main()
