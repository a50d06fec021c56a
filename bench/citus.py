"""`python -m bench.citus --citus URL --plain URL`: compares the cost of a capture on a Citus cluster and on a plain
PostgreSQL.

You start both servers on this machine, with the same version of PostgreSQL. The URLs name an empty database and a
superuser. The read and the save of a capture (`db/order`) run in alternating rounds on the plain server, through the
coordinator, and through the worker that has the merchant. The CPU time is that of all processes of each server. The
benchmark prints a table and writes no file.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg

from cuota.core.installment import Installment
from cuota.core.order.capture import capture
from cuota.core.order.event import Event
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.db.citus import distribute
from cuota.db.migrate import migrate
from cuota.db.open_pool import open_pool
from cuota.db.order import orders, outcomes
from cuota.db.order.outcomes import NewOrder
from cuota.db.pool import Pool
from cuota.flows.context import new_id, new_token

SECONDS, WARM = 3.0, 1.0
AMOUNT = 100_000_000
_NODES = "SELECT groupid, nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
_NODE_OF = """SELECT groupid FROM pg_dist_placement
    WHERE shardid = get_shard_id_for_distribution_column('orders', $1::uuid)"""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Round:
    """The results of one round: the seconds of each capture, and the CPU seconds of each server."""

    seconds: list[float] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)


def cpu_seconds(folder: str) -> float:
    """Return the CPU time of all processes of the server with this data folder, including processes that have ended."""
    first = (Path(folder) / "postmaster.pid").read_text().split()[0]
    tree, total = [first], 0
    for pid in tree:
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        tree += children
        # Add the process's user and system time. For the first process, also add the time of its children that have
        # ended.
        total += sum(map(int, stat[11:15] if pid == first else stat[11:13]))
    return total / _TICKS


async def ask(url: str, sql: str, *values: object) -> list[asyncpg.Record]:
    """Run one statement in a separate session."""
    connection = await asyncpg.connect(url)
    try:
        return list(await connection.fetch(sql, *values))
    finally:
        await connection.close()


async def approved(pool: Pool, merchant_id: UUID) -> Order:
    """Return a new order with a plan, in the state after the checkout."""
    now = datetime.now(UTC)
    order = Order(
        merchant_id=merchant_id, order_id=new_id(), version=1, status=Status.CREATED, currency="USD", amount=AMOUNT, fee=0,
        auto_capture=False, created_at=now, expires_at=now + timedelta(hours=1), events=1,
    )  # fmt: skip
    new = NewOrder(order, new_token(), "bench", "{}", (Event("order.created", AMOUNT),))
    assert await outcomes.create(pool, new)
    found = await orders.read_with_plan(pool, merchant_id, order.order_id)
    assert found
    plan = tuple(Installment(n, now.date() + timedelta(days=14 * n), AMOUNT // 4, 0) for n in range(1, 5))
    agreed = replace(found.order, status=Status.APPROVED, authorization_expires_at=now + timedelta(days=7))
    event = Event("order.approved", AMOUNT)
    assert await outcomes.save(pool, Outcome(order=agreed, installments=plan, events=(event,), at=now))
    return found.order


async def one_capture(pool: Pool, merchant_id: UUID, order_id: UUID) -> None:
    """Read an order, decide, and save the capture, as a merchant's call does."""
    asked = MovementRequest(MovementKind.CAPTURE, str(new_id()), 1)
    found = await orders.read(
        pool, merchant_id, order_id, MovementKind.CAPTURE, asked.reference, with_plan=False
    )
    assert found
    assert await outcomes.save(pool, capture(found.order, asked, new_id(), datetime.now(UTC)))


async def load(pool: Pool, made: list[tuple[UUID, UUID]], seconds: float) -> list[float]:
    """Let each client capture its own order repeatedly. Return the seconds of each capture."""
    took: list[float] = []
    until = time.monotonic() + seconds

    async def client(merchant_id: UUID, order_id: UUID) -> None:
        while time.monotonic() < until:
            began = time.monotonic()
            await one_capture(pool, merchant_id, order_id)
            took.append(time.monotonic() - began)

    await asyncio.gather(*(client(*each) for each in made))
    return took


async def measured(url: str, merchants: list[UUID], clients: int, folders: dict[str, str]) -> Round:
    """Run one round with a separate pool of sessions. The CPU time counts only after the warm-up."""
    pool = await open_pool({"dsn": url}, 16)
    try:
        made = [
            (whose := merchants[n % len(merchants)], (await approved(pool, whose)).order_id)
            for n in range(clients)
        ]
        await load(pool, made, WARM)
        before = {name: cpu_seconds(folder) for name, folder in folders.items()}
        took = await load(pool, made, SECONDS)
        return Round(took, {name: cpu_seconds(folder) - before[name] for name, folder in folders.items()})
    finally:
        await pool.close()


async def prepared(url: str, *, citus: bool) -> None:
    """Run the migrations, and distribute the tables."""
    connection = await asyncpg.connect(url)
    await migrate(connection, "sandbox")
    if citus:
        await distribute(connection)
    await connection.close()


async def on_one_node(url: str) -> tuple[int, list[UUID]]:
    """Return a worker, and sixteen merchants whose rows this worker has."""
    by_node: dict[int, list[UUID]] = defaultdict(list)
    while True:
        merchant_id = new_token()
        [row] = await ask(url, _NODE_OF, merchant_id)
        by_node[row["groupid"]].append(merchant_id)
        if len(by_node[row["groupid"]]) == 16:
            return row["groupid"], by_node[row["groupid"]]


async def run(options: argparse.Namespace) -> None:
    await prepared(options.plain, citus=False)
    await prepared(options.citus, citus=True)
    parts = urlsplit(options.citus)
    who = parts.netloc.rpartition("@")[0]
    urls = {
        row["groupid"]: parts._replace(netloc=f"{who}@{row['nodename']}:{row['nodeport']}").geturl()
        for row in await ask(options.citus, _NODES)
    }
    folders = {f"node {node}": (await ask(url, "SHOW data_directory"))[0][0] for node, url in urls.items()}
    plain = {"plain": (await ask(options.plain, "SHOW data_directory"))[0][0]}
    node, merchants = await on_one_node(options.citus)
    ways: dict[str, tuple[str, dict[str, str]]] = {
        "plain": (options.plain, plain),
        "coordinator": (urls[0], folders),
        f"worker {node}, which has the merchant": (urls[node], folders),
    }
    loads: tuple[tuple[str, int, list[UUID]], ...] = (
        ("1 client", 1, merchants[:1]),
        ("16 clients, 16 merchants", 16, merchants),
        ("16 clients, one merchant (batches)", 16, merchants[:1]),
    )
    for title, clients, whose in loads:
        rounds: dict[str, list[Round]] = defaultdict(list)
        for _ in range(options.rounds):
            for name, (url, where) in ways.items():
                rounds[name].append(await measured(url, whose, clients, where))
        show(title, rounds)


def show(title: str, rounds: dict[str, list[Round]]) -> None:
    """Print one table with the medians of the rounds."""
    print(f"\n{title}\n{'through':42} {'p50 ms':>8} {'captures/s':>11} {'CPU ms per capture, by server'}")
    for name, found in rounds.items():
        p50 = median(median(each.seconds) for each in found) * 1000
        rate = median(len(each.seconds) for each in found) / SECONDS
        cpu = {
            server: median(each.cpu[server] / len(each.seconds) for each in found) * 1000
            for server in found[0].cpu
        }
        told = ", ".join(f"{server} {ms:.2f}" for server, ms in cpu.items())
        print(f"{name:42} {p50:8.2f} {rate:11.0f} {sum(cpu.values()):.2f} in all: {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--citus", required=True, help="the coordinator, with an empty database on every node"
    )
    parser.add_argument("--plain", required=True, help="an empty database of a plain PostgreSQL")
    parser.add_argument("--rounds", type=int, default=3)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
