"""Kills workers of a Citus cluster under load: `python tests/deploy/node_deaths.py --count 50`.

Storefronts with merchants on every worker create orders and capture. Meanwhile the program kills one worker
after another with -9, starts it again, and moves shards. Then it checks that no acknowledged operation is
lost or doubled. It starts its own cluster with deploy/citus.sh (PGBIN; CPU), or uses yours if you give --url,
--kill and --start. In these commands, {node} stands for a worker's group id. The program prints the seed of
its random choices.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.deploy.citus_nodes import Nodes
from support.deploy.fronts_on_workers import fronts
from support.deploy.machines import command, folder, free_ports, script
from support.deploy.timed_storefront import TimedStorefront

MOVE = """SELECT citus_move_shard_placement(get_shard_id_for_distribution_column('orders', $1::uuid), $2, $3::int, $4, $5::int,
    shard_transfer_mode := 'block_writes')"""
AGAIN_SECONDS = 90.0


@dataclass
class Run:
    """The storefronts, and each death: its node, when that died, and when that was back."""

    nodes: Nodes
    fronts: list[TimedStorefront]
    deaths: list[tuple[int, float, float]] = field(default_factory=list)
    moves: int = 0
    hangs: bool = False


async def move_shards(run: Run, count: int) -> None:
    """Move the shards of this many storefronts' merchants to another worker, one after the other, without
    pausing the load."""
    workers = {node: urlsplit(url) for node, url in (await run.nodes.urls()).items() if node > 0}
    for at_front in range(count):
        front = run.fronts[at_front % len(run.fronts)]
        from_node = await run.nodes.worker_of(front.merchant)
        to_node = next(node for node in workers if node != from_node)
        here, there = workers[from_node], workers[to_node]
        await run.nodes.ask(MOVE, front.merchant, here.hostname, here.port, there.hostname, there.port)
        front.node = to_node
        run.moves += 1


async def drive(run: Run, count: int, choice: random.Random, moves: int = 0) -> None:
    """Kill one worker after another under load, and start it again. Then move shards."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(front.run(stop)) for front in run.fronts]
    workers = sorted({front.node for front in run.fronts})
    await asyncio.sleep(3)
    for _ in range(count):
        await asyncio.sleep(choice.uniform(0.5, 2.5))
        node = choice.choice(workers)
        died = time.monotonic()
        if run.hangs:
            # Longer than statement_timeout.
            run.nodes.hang(node)
            await asyncio.sleep(choice.uniform(6, 12))
        else:
            run.nodes.kill(node)
            await asyncio.sleep(choice.uniform(2, 4))
        await run.nodes.back(node)
        back = time.monotonic()
        run.deaths.append((node, died, back))
        # Every merchant of the node is served again before the next death.
        mine = [front for front in run.fronts if front.node == node]
        while not all(front.times and front.times[-1] > back for front in mine):
            assert time.monotonic() < back + AGAIN_SECONDS, f"merchants of node {node} are not served again"
            await asyncio.sleep(0.2)
    await move_shards(run, moves)
    await asyncio.sleep(1)
    stop.set()
    await asyncio.gather(*tasks)


async def wrongs(run: Run) -> list[str]:
    """Return the problems: acknowledged operations that are lost or exist twice, and prepared transactions
    that are left on a node."""
    found = [f"strange answer: {text}" for front in run.fronts for text in front.strange]
    connection = await asyncpg.connect(run.nodes.url)
    for front in run.fronts:
        rows = await connection.fetch(
            "SELECT m.reference FROM movements m JOIN orders o USING (merchant_id, order_id) WHERE o.order_id = $1",
            UUID(front.order),
        )
        there = [row["reference"] for row in rows]
        found += [f"capture {each} was acknowledged but is lost" for each in front.captured - set(there)]
        found += [
            f"capture {each} was never acknowledged but is in the database"
            for each in set(there) - front.captured
        ]
        total = await connection.fetchval(
            "SELECT captured FROM orders WHERE order_id = $1", UUID(front.order)
        )
        if not total == len(there) == len(set(there)):
            found.append(f"order {front.order} has captured {total} by {len(there)} captures of one cent")
        rows = await connection.fetch(
            "SELECT reference, order_id::text FROM order_details WHERE reference = ANY($1)",
            list(front.created),
        )
        made = sorted((row["reference"], row["order_id"]) for row in rows)
        if made != sorted(front.created.items()):
            found.append(
                f"{len(front.created)} orders were acknowledged, but {len(made)} are in the database"
            )
    await connection.close()
    left = {node: count for node, count in (await run.nodes.prepared()).items() if count}
    return [*found, *(f"node {node} has {count} prepared transactions" for node, count in left.items())]


def at(part: float, seconds: list[float]) -> str:
    """Return this quantile of the times as text, in milliseconds."""
    ordered = sorted(seconds)
    return f"{ordered[min(int(part * len(ordered)), len(ordered) - 1)] * 1000:.0f} ms" if ordered else "-"


def _seconds(run: Run, since: float, until: float, without: int = -1) -> list[float]:
    """Return how long the answers 200 took whose requests began in this time, without the merchants of one node."""
    answers = (each for front in run.fronts for each in front.between(since, until))
    return [each.seconds for each in answers if each.status == 200 and each.node != without]


def _quantiles(seconds: list[float]) -> str:
    return f"p50 {at(0.5, seconds)}, p99 {at(0.99, seconds)}"


def report(run: Run) -> list[str]:
    """Return the lines of the report. No test asserts these times, because they depend on the machine."""
    first = min((died for _, died, _ in run.deaths), default=float("inf"))
    before = _seconds(run, 0, first)
    # The answers get slower during a run, because each storefront captures one order again and again. So the times of the others
    # during a death are compared with the times of the same merchants between this death and the next one.
    ends = [died for _, died, _ in run.deaths[1:]]
    calm = [
        seconds
        for (node, _, back), end in zip(run.deaths, ends, strict=False)
        for seconds in _seconds(run, back, end, without=node)
    ]
    during = [
        (each, each.node == node)
        for node, died, back in run.deaths
        for front in run.fronts
        for each in front.between(died, back)
    ]
    refused = [each.seconds for each, of_dead in during if of_dead and each.status == 503]
    others = [each for each, of_dead in during if not of_dead]
    times = [each.seconds for each in others]
    statuses = Counter(f"{each.status} {each.reason}".strip() for each in others)
    captures = sum(len(front.captured) for front in run.fronts)
    created = sum(len(front.created) for front in run.fronts)
    slow = f"half within {at(0.5, refused)}, 99 % within {at(0.99, refused)}, the slowest {at(1, refused)}"
    quiet = f"between the deaths {len(calm)} answers, {_quantiles(calm)}; before the first death {_quantiles(before)}"
    return [
        f"{len(run.deaths)} deaths, {run.moves} moves of a shard; {captures} captures and {created} orders acknowledged",
        f"merchants of the dead worker: {len(refused)} answers 503, {slow}",
        f"the others meanwhile: {len(others)} answers, {_quantiles(times)}; {quiet}",
        f"statuses of the others meanwhile: {dict(statuses)}",
    ]


@contextlib.contextmanager
def cluster(path: Path, port: int, options: argparse.Namespace) -> Iterator[Nodes]:
    """The cluster of the program's arguments, or else one that deploy/citus.sh starts."""
    if options.url:
        yield Nodes(options.url, None, options.kill, options.start)
        return
    (path / "db").mkdir()
    with script("citus.sh", str(path / "db"), PORT=str(port), REST="2") as started:
        yield Nodes(started["url"], path / "db")


def kill_workers(count: int, seed: int, options: argparse.Namespace) -> tuple[Run, list[str]]:
    """Start everything, kill `count` workers, and return the run and its problems."""
    with folder() as path:
        port = free_ports(10)
        with cluster(path, port + 4, options) as nodes:
            command("migrate", "--citus", "--database", nodes.url, CUOTA_DATA_DIR=str(path / "command"))
            shared = {"CUOTA_DATABASE_URL": nodes.url, "PORT": str(port)}
            if options.entry:
                shared["CUOTA_DATABASE_ENTRY_URL"] = asyncio.run(nodes.urls())[options.entry]
            with script("several-web.sh", str(path / "web"), "1", "0", **shared) as web:
                url = web["urls"][0]
                machine = {
                    "CUOTA_DATABASE_URL": nodes.url,
                    "CUOTA_SECRET_KEY": (path / "web" / "secret.key").read_text().strip(),
                    "CUOTA_PUBLIC_URL": url,
                    "CUOTA_DATA_DIR": str(path / "command"),
                }
                run = Run(nodes, asyncio.run(fronts(nodes, url, machine)), hangs=options.hang)
                asyncio.run(drive(run, count, random.Random(seed), options.moves))
                found = asyncio.run(wrongs(run))
            said = command("verify", **machine)
    return run, found if "; 0 disagree" in said else [*found, said]


def parser() -> argparse.ArgumentParser:
    """The program's arguments."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--count", type=int, default=50, help="how many deaths (default 50)")
    made.add_argument("--moves", type=int, default=4, help="how many shards are moved after that (default 4)")
    made.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    made.add_argument(
        "--entry", type=int, help="the group id of the worker through which orders are read and saved"
    )
    made.add_argument(
        "--hang", action="store_true", help="the workers hang for some seconds and do not die (SIGSTOP)"
    )
    made.add_argument("--url", help="the URL of an empty database on your own cluster's coordinator")
    made.add_argument("--kill", help="the command that kills a node with -9; {node} is its group id")
    made.add_argument("--start", help="the command that starts the node again")
    return made


def main() -> int:
    options = parser().parse_args()
    print(f"{options.count} deaths, seed {options.seed}", flush=True)
    run, found = kill_workers(options.count, options.seed, options)
    print("\n".join(report(run)))
    print(
        "\n".join(found)
        or "No acknowledged operation was lost, none was applied twice, and no prepared transaction is left."
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
