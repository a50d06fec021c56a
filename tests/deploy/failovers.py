"""Failovers under load: `python tests/deploy/failovers.py --count 20` (or `make failovers`).

The program starts two web machines on a PostgreSQL with a synchronous standby (deploy/standbys.sh), and
storefronts that record every answer. Again and again it kills, freezes or switches the primary. No
acknowledged operation may be lost, none may be applied twice, and writes must work again within 30 seconds.
The program prints the seed of its random choices.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.deploy.lasting_storefront import Storefront
from support.deploy.machines import ORDER, bearer, command, folder, free_ports, merchant, script

KINDS = ("kill", "switch", "freeze")
BACK_SECONDS = 30.0
STEP_SECONDS = 120.0
FROZEN_SECONDS = 25.0
CLIENTS = 6


@dataclass
class Cluster:
    """The PostgreSQL nodes that deploy/standbys.sh started."""

    folder: Path
    monitor: str
    url: str

    async def ask(self, sql: str) -> list[asyncpg.Record]:
        """Query the monitor. Return no rows if the monitor cannot be reached."""
        try:
            connection = await asyncpg.connect(self.monitor, timeout=3)
        except (OSError, asyncpg.PostgresError):
            return []
        try:
            return list(await connection.fetch(sql))
        finally:
            connection.terminate()

    async def states(self) -> dict[str, str]:
        """Return each node's state, or "" while the node is unhealthy or changing to another state."""
        rows = await self.ask(
            "SELECT nodename, reportedstate::text AS is, goalstate::text AS should, health FROM pgautofailover.node"
        )
        return {r["nodename"]: r["is"] if r["is"] == r["should"] and r["health"] == 1 else "" for r in rows}

    async def in_step(self, not_primary: str = "") -> str:
        """Wait until one node other than `not_primary` is the primary and all others are secondaries. Return
        the primary."""
        until = time.monotonic() + STEP_SECONDS
        while time.monotonic() < until:
            states = await self.states()
            primary = next((name for name, state in states.items() if state == "primary"), "")
            rest = [state for name, state in states.items() if name != primary]
            if primary and primary != not_primary and rest and set(rest) == {"secondary"}:
                return primary
            await asyncio.sleep(0.3)
        raise AssertionError(f"the nodes did not reach a primary with secondaries: {await self.states()}")

    def processes(self, node: str) -> list[int]:
        """Return the process ids of the node's keeper and of all its descendants."""
        found = [int((self.folder / node / "keeper.pid").read_text())]
        for pid in found:
            try:
                found += [
                    int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                ]
            except OSError:
                continue
        return found

    async def strike(self, kind: str, node: str) -> None:
        """`kill` is like a power failure, `freeze` is a machine that hangs for a while, `switch` is a planned
        failover."""
        if kind == "switch":
            await self.ask("SELECT pgautofailover.perform_failover()")
            return
        struck = self.processes(node)
        _signal(struck, signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
        if kind == "freeze":
            await asyncio.sleep(FROZEN_SECONDS)
            _signal(struck, signal.SIGCONT)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


@dataclass
class Run:
    """One run of the program, with its failovers so far."""

    cluster: Cluster
    fronts: list[Storefront]
    struck: list[dict[str, Any]] = field(default_factory=list)

    def outage(self, since: float) -> float:
        """Return the longest time between two acknowledged writes since `since`, in seconds."""
        times = sorted(at for front in self.fronts for at in front.times if at >= since - 1)
        times.append(time.monotonic())
        return max(after - before for before, after in zip([since, *times], times, strict=False))

    async def fail_over(self, kind: str) -> None:
        primary = await self.cluster.in_step()
        await asyncio.sleep(2)
        since = time.monotonic()
        await self.cluster.strike(kind, primary)
        now = await self.cluster.in_step(not_primary=primary)
        await asyncio.sleep(2)
        found = {"kind": kind, "from": primary, "to": now, "no_writes_for": round(self.outage(since), 1)}
        found["in_step_after"] = round(time.monotonic() - since - 2, 1)
        self.struck.append(found)
        print(found, flush=True)


async def drive(run: Run, kinds: list[str]) -> None:
    """Make the failovers under load. At the end, every storefront has a definite answer to each of its
    requests."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(front.run(stop)) for front in run.fronts]
    try:
        for kind in kinds:
            await run.fail_over(kind)
    finally:
        stop.set()
        await asyncio.wait_for(asyncio.gather(*tasks), 90)


async def wrongs(run: Run) -> list[str]:
    """Return the problems, in words."""
    found = [f"unexpected answer: {text}" for front in run.fronts for text in front.strange]
    connection = await asyncpg.connect(run.cluster.url)
    try:
        for front in run.fronts:
            found += await _wrongs_of(connection, front)
        gaps = await connection.fetch(
            "SELECT order_id FROM events GROUP BY order_id HAVING count(*) <> max(sequence)"
        )
        found += [f"events of {row['order_id']} have gaps" for row in gaps]
    finally:
        await connection.close()
    late = [each for each in run.struck if each["no_writes_for"] > BACK_SECONDS]
    return found + [f"writes did not work again within {BACK_SECONDS:.0f} s: {each}" for each in late]


async def _wrongs_of(connection: asyncpg.Connection, front: Storefront) -> list[str]:
    found = []
    rows = await connection.fetch(
        "SELECT reference FROM movements WHERE order_id = $1::text::uuid", front.order
    )
    captured = {row["reference"] for row in rows}
    found += [f"capture {each} was acknowledged but is lost" for each in front.captured - captured]
    found += [
        f"capture {each} was never acknowledged but is in the database" for each in captured - front.captured
    ]
    total = await connection.fetchval(
        "SELECT captured FROM orders WHERE order_id = $1::text::uuid", front.order
    )
    if total != len(captured):
        found.append(f"order {front.order} has captured {total} by {len(captured)} captures of one cent")
    rows = await connection.fetch(
        "SELECT reference, array_agg(order_id::text) AS ids FROM order_details WHERE reference = ANY($1) GROUP BY 1",
        list(front.created),
    )
    made = {row["reference"]: row["ids"] for row in rows}
    found += [
        f"order {each} was acknowledged as {order_id}, but the database has {made.get(each)}"
        for each, order_id in front.created.items()
        if made.get(each) != [order_id]
    ]
    return found


def fail_over(count: int, seed: int, nodes: int = 2) -> tuple[Run, list[str]]:
    """Start everything, make `count` failovers, and return the run and its problems."""
    choice = random.Random(seed)
    kinds = [KINDS[at % len(KINDS)] for at in range(count)]
    choice.shuffle(kinds)
    with folder() as path:
        port = free_ports(10)
        (path / "db").mkdir()
        with script("standbys.sh", str(path / "db"), str(nodes), PORT=str(port + 4), REST="15") as database:
            shared = {"CUOTA_DATABASE_URL": database["url"], "PORT": str(port)}
            with script("several-web.sh", str(path / "web"), "2", "1", **shared) as web:
                cluster = Cluster(path / "db", database["monitor"], database["url"])
                run = Run(cluster, _fronts(path, web["urls"], database["url"]))
                asyncio.run(drive(run, kinds))
                found = asyncio.run(wrongs(run))
            said = command("verify", **_as_machine(path, web["urls"], database["url"]))
    return run, found if "; 0 disagree" in said else [*found, said]


def _as_machine(path: Path, urls: list[str], url: str) -> dict[str, str]:
    return {
        "CUOTA_DATABASE_URL": url,
        "CUOTA_SECRET_KEY": (path / "web" / "secret.key").read_text().strip(),
        "CUOTA_PUBLIC_URL": urls[0],
        "CUOTA_DATA_DIR": str(path / "command"),
    }


def _fronts(path: Path, urls: list[str], url: str) -> list[Storefront]:
    """Make the storefronts, each with its own approved order."""
    shared = _as_machine(path, urls, url)
    shop = merchant(**shared)
    headers = bearer(urls[0], shop)
    fronts = []
    for at in range(CLIENTS):
        answer = httpx.post(f"{urls[0]}/order", json=ORDER, headers=headers, trust_env=False, timeout=30)
        made = answer.raise_for_status().json()
        command("sandbox", "complete", made["redirectUrl"], "--outcome", "approved", **shared)
        fronts.append(Storefront(urls[at % 2 :] + urls[: at % 2], headers, str(made["orderId"])))
    return fronts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="how many failovers (default 20)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--nodes", type=int, default=2, help="PostgreSQL nodes (default 2)")
    options = parser.parse_args()
    print(f"{options.count} failovers, seed {options.seed}", flush=True)
    run, found = fail_over(options.count, options.seed, options.nodes)
    captures = sum(len(front.captured) for front in run.fronts)
    orders = sum(len(front.created) for front in run.fronts)
    unsure = sum(front.unsure for front in run.fronts)
    times = sorted(each["no_writes_for"] for each in run.struck)
    print(
        f"{len(run.struck)} failovers; {captures} captures and {orders} orders acknowledged, {unsure} requests repeated; "
        f"without a write for {times[0]} to {times[-1]} s, {times[len(times) // 2]} s in the middle"
    )
    print("\n".join(found) or "No acknowledged operation was lost, and none was applied twice.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
