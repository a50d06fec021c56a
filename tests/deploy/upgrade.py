"""Upgrades a service under load, one machine after the other: `python tests/deploy/upgrade.py FOLDER`.

FOLDER is a checkout of an earlier release with its own .venv (`git worktree add FOLDER COMMIT; make -C FOLDER .venv/run`).
Two machines of the earlier release serve shops behind a load balancer. The program does what docs/upgrade.md says: it
migrates with this release, and then replaces one machine after the other. In each phase orders are created, approved,
captured and refunded, and the clock moves, so that installments are charged by both releases. At the end, no operation
may be lost or doubled, no request may have been answered 500, each event must have arrived, and `cuota verify` must
find nothing. The program prints the seed of its random choices.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.deploy.balancer import Balancer
from support.deploy.machines import bearer, folder, free_ports, script
from support.deploy.order_lives import Shop
from support.deploy.release import InstalledRelease, kill_workers_of
from support.faults import struck

ROOT = Path(__file__).resolve().parents[2]
SHOPS = 3
PATIENCE_SECONDS = 120
# The clock jumps by two days at a time, as if nobody had moved it, so that the background jobs of both releases find work that is due.
JUMPS = 8
_JUMP = "UPDATE sandbox_clock SET ahead = ahead + interval '2 days'"
# The database's owner serves here, its workers are killed, and a busy machine has no free session for a while.
EXPECTED = ("is a superuser", "another one replaces it", '"problem": "Refused"')
_DUE = """SELECT (SELECT count(*) FROM orders, sandbox_clock WHERE due_at <= clock_timestamp() + ahead)
    + (SELECT count(*) FROM messages, sandbox_clock WHERE state = 'pending' AND try_at <= clock_timestamp() + ahead)"""
_UNSENT = "SELECT count(*) FROM deliveries WHERE state = 'pending'"
_EVENTS = """SELECT 'evt_' || replace(order_id::text, '-', '') || '_' || sequence, type, coalesce(state, 'missing')
    FROM events LEFT JOIN deliveries USING (merchant_id, order_id, sequence) ORDER BY order_id, sequence"""
# An installment is charged once in a day.
_DOUBLED = """SELECT 'charge of installment ' || installment || ' of order ' || order_id, count(*) FROM charges
    WHERE state = 'succeeded' GROUP BY order_id, installment, amount, merchant_id, created_at::date HAVING count(*) > 1"""


@dataclass
class Upgrade:
    """Both releases, the shops, and where requests go."""

    old: InstalledRelease
    new: InstalledRelease
    balancer: Balancer
    shops: list[Shop]

    def phase(self, name: str, machines: list[str], seconds: float, *, weeks: bool = False) -> None:
        """Serve the shops with these machines for this long. With `weeks`, the clock then goes on by two weeks."""
        self.balancer.machines = machines
        self.balancer.answered.clear()
        before = sum(shop.calls for shop in self.shops)
        with self.loaded():
            time.sleep(seconds)
        if weeks:
            for shop in self.shops:
                shop.close_all()
            asyncio.run(jump(self.old.settings["CUOTA_DATABASE_URL"]))
        calls = sum(shop.calls for shop in self.shops) - before
        print(f"{name}: {calls} calls, answers {dict(self.balancer.answered)}", flush=True)

    @contextmanager
    def loaded(self) -> Iterator[None]:
        """Let the shops work during the block."""
        stop = threading.Event()
        threads = [threading.Thread(target=shop.run, args=[stop]) for shop in self.shops]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()


async def jump(url: str) -> None:
    """Let the clock jump again and again, each time when the background jobs have no due work left."""
    connection = await asyncpg.connect(url)
    try:
        for _ in range(JUMPS):
            await connection.execute(_JUMP)
            await _until_none(connection, _DUE)
    finally:
        await connection.close()


async def _until_none(connection: asyncpg.Connection, count: str) -> None:
    """Wait until a statement counts 0 rows."""
    for _ in range(PATIENCE_SECONDS * 3):
        if not await connection.fetchval(count):
            return
        await asyncio.sleep(1 / 3)
    raise AssertionError(f"rows were left: {count}")


def shops(release: InstalledRelease, url: str, events: str, seed: int) -> list[Shop]:
    """Make merchants with the earlier release, and register their receivers of events."""
    made = []
    for number in range(SHOPS):
        output = release.command(
            "merchant", "create", "--name", f"Shop {number}", "--defer-funds-capture", "--json"
        )
        headers = bearer(url, json.loads(output))
        httpx.post(
            f"{url}/webhook-endpoints", json={"url": events}, headers=headers, trust_env=False, timeout=60
        ).raise_for_status()
        made.append(Shop(url, headers, random.Random(seed + number)))
    return made


async def left_over(url: str, came: set[str]) -> list[str]:
    """Wait until all events are delivered. Return those that did not arrive, and what happened twice."""
    connection = await asyncpg.connect(url)
    try:
        await _until_none(connection, _UNSENT)
        events = await connection.fetch(_EVENTS)
        doubled = await connection.fetch(_DOUBLED)
    finally:
        await connection.close()
    missing = [
        f"event {event} ({kind}, delivery {state}) did not arrive"
        for event, kind, state in events
        if event not in came
    ]
    return [*missing, *(f"{count} times: {what}" for what, count in doubled)]


def logged(place: Path) -> list[str]:
    """Return what the machines logged as a problem, without the lines that this program causes."""
    return [
        f"{log_file.parent.name}: {line[:600]}"
        for log_file in sorted(place.glob("*/log"))
        for line in log_file.read_text().splitlines()
        if line.strip() and not any(text in line for text in EXPECTED)
    ]


def upgraded(old_folder: Path, seconds: float, seed: int) -> list[str]:
    """Upgrade under load, and return the problems."""
    with folder() as place, ExitStack() as stack:
        port = free_ports(6)
        stack.enter_context(script("several-web.sh", str(place), "0", "0", PORT=str(port)))
        balancer = Balancer(port + 1)
        stack.enter_context(balancer.running())
        receiver = stack.enter_context(struck.receiver())
        url = f"postgresql://cuota:{(place / 'password').read_text().strip()}@127.0.0.1:{port}/postgres"
        settings = {
            "CUOTA_DATABASE_URL": url,
            "CUOTA_SECRET_KEY": (place / "secret.key").read_text().strip(),
            "CUOTA_PUBLIC_URL": balancer.url,
            "CUOTA_POLICY": str(ROOT / "tests" / "wide.toml"),
            "CUOTA_DATA_DIR": str(place / "command"),
        }
        old = InstalledRelease("old", old_folder / ".venv/bin/python", settings)
        new = InstalledRelease("new", Path(sys.executable), settings)
        first, second, third = (f"http://127.0.0.1:{port + at}" for at in (3, 4, 5))
        machines = ExitStack()
        with machines:
            with old.serving(port + 3, place / "old 1") as parent:
                with old.serving(port + 4, place / "old 2"):
                    balancer.machines = [first, second]
                    run = Upgrade(old, new, balancer, shops(old, balancer.url, receiver.url, seed))
                    run.phase("earlier release", [first, second], seconds)
                    with run.loaded():
                        print(new.command("migrate").strip(), flush=True)
                    run.phase("earlier release, migrated", [first, second], seconds, weeks=True)
                    kill_workers_of(parent)
                    run.phase("earlier release, its workers replaced", [first, second], seconds)
                    machines.enter_context(new.serving(port + 5, place / "new 1"))
                    run.phase("both releases", [first, second, third], seconds, weeks=True)
                    balancer.machines = [first, third]
                run.phase("one machine each", [first, third], seconds)
                balancer.machines = [third]
            machines.enter_context(new.serving(port + 4, place / "new 2"))
            run.phase("this release", [second, third], seconds, weeks=True)
            new.command("time", "advance", "43d")
            for shop in run.shops:
                shop.end()
            found = asyncio.run(left_over(url, receiver.ids))
            said = new.command("verify").strip()
        print(said)
        print(f"{sum(len(shop.lives) for shop in run.shops)} orders, {len(receiver.ids)} events")
        problems = [problem for shop in run.shops for problem in shop.problems] + balancer.errors + found
        problems += [] if "; 0 disagree" in said else [said]
        return problems + logged(place)


def main() -> int:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("folder", type=Path, help="a checkout of the earlier release, with its .venv")
    made.add_argument("--seconds", type=float, default=20.0, help="how long each phase lasts (default 20)")
    made.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    options = made.parse_args()
    print(f"seed {options.seed}", flush=True)
    found = upgraded(options.folder.resolve(), options.seconds, options.seed)
    print("\n".join(found) or "No operation was lost or applied twice, and each event arrived.")
    return 1 if found else 0


if __name__ == "__main__":
    os.environ.pop("CUOTA_DATA_DIR", None)
    sys.exit(main())
