"""`python -m bench.settlement`: measures the time for the lines and the batch of a merchant with a million movements.

Meanwhile four clients capture orders of the same merchant through the service's own flows, and the number of captures a second
is compared with the time before and after. A second process writes the lines and closes the batch, as a worker does. Takes about
ten minutes with a million movements, and prints a table.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from bench.row_security import _approved
from bench.seed import fill
from bench.work import order_id, order_id_sql
from cuota import config
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.db.embedded.server import open_embedded
from cuota.db.payout.batches import Closing
from cuota.db.webhook import events
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import MerchantTerms, create_merchant
from cuota.flows.order.capture_order import capture_order
from cuota.flows.payout.close_batches import close_merchant
from cuota.flows.payout.settle_movements import settle_merchant
from cuota.run import runtime

CLIENTS = 4
PAST_PREFIX = "01980000-0000-7000-8000-"
# Statements that insert one movement of each past order, as the service writes it: event, movement, ledger row, and
# position in the feed.
_EACH = "FROM generate_series(1, $2::bigint) n"
_PAST = (
    f"""INSERT INTO movements SELECT $1, {{order}}, 'capture', 'past', md5('m' || n)::uuid, 100 + n % 900,
        now() - interval '1 hour' {_EACH}""",
    f"""INSERT INTO transfers SELECT $1, {{order}}, 3, 'capture', md5('m' || n)::uuid, 'authorized_uncaptured',
        'merchant_payable', 100 + n % 900, 'USD', now() - interval '1 hour' {_EACH}""",
    f"""INSERT INTO events SELECT $1, {{order}}, 1, 'capture.completed', 'CaptureOrder', 100 + n % 900, 'past', true, NULL,
        now() - interval '1 hour' {_EACH}""",
    f"""INSERT INTO feed SELECT $1, n + (SELECT last_position FROM feeds WHERE merchant_id = $1), {{order}}, 1
        {_EACH}""",
)
_ACCOUNT = "INSERT INTO bank_accounts VALUES ($1, gen_random_uuid(), '\\x00', '\\x00', '6789', now() - interval '1 day', now())"


async def seed(where: dict[str, Any], merchant_id: UUID, movements: int) -> None:
    """Insert the merchant's past orders and movements."""
    owner = await asyncpg.connect(**where)
    try:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(_ACCOUNT, merchant_id)
        for sql in _PAST:
            await owner.execute(sql.format(order=order_id_sql("n", PAST_PREFIX)), merchant_id, movements)
        await owner.execute(
            "UPDATE feeds SET last_position = last_position + $2 WHERE merchant_id = $1",
            merchant_id,
            movements,
        )
        await owner.execute("VACUUM ANALYZE")
        await owner.execute("CHECKPOINT")
    finally:
        await owner.close()


async def publish(context: Context, merchant_id: UUID) -> None:
    """Give every event of the merchant its position in the feed."""
    while await events.publish(context.pool, merchant_id, context.now(), 1000):
        pass


async def settle(context: Context, merchant_id: UUID) -> None:
    """Write all lines."""
    await publish(context, merchant_id)
    while await settle_merchant(context, merchant_id):
        pass


async def close(context: Context, merchant_id: UUID) -> None:
    """Close the batch. The latest movements are published first."""
    while True:
        await publish(context, merchant_id)
        if Closing.PAID in await close_merchant(context, merchant_id):
            break


PHASES = {"lines": settle, "close": close}


def child(phase: str, where: str, merchant: str, data: str) -> None:
    """Run one phase in this process, and print its seconds and the most memory that the process has used.

    A worker is already running when a batch is due. So this process prints a line when it is ready, and begins when it reads one.
    """

    async def go() -> float:
        settings = config.load({"CUOTA_DATA_DIR": data})
        async with runtime.opened(settings, json.loads(where), pool_size=2, decides=False) as context:
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            began = time.perf_counter()
            await PHASES[phase](context, UUID(merchant))
            return time.perf_counter() - began

    seconds = asyncio.run(go())
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


@dataclass
class Captures:
    """The clients that capture orders, with the number of captures so far."""

    context: Context
    merchant_id: UUID
    orders: int
    done: int = 0

    async def client(self, numbers: Any) -> None:
        while True:
            number = next(numbers)
            asked = MovementRequest(MovementKind.CAPTURE, f"bench {number // self.orders}", 100)
            order = order_id(number % self.orders + 1)
            await capture_order(self.context, self.merchant_id, order, asked)
            self.done += 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        numbers = itertools.count()
        tasks = [asyncio.create_task(self.client(numbers)) for _ in range(CLIENTS)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def rate(self, seconds: float) -> float:
        before, began = self.done, time.perf_counter()
        await asyncio.sleep(seconds)
        return (self.done - before) / (time.perf_counter() - began)


@dataclass(frozen=True)
class Phase:
    """The time of a phase, the captures a second during the phase, and those in the whole minute that began with it."""

    seconds: float
    memory: float
    meanwhile: float
    minute: float

    def row(self, step: str) -> str:
        """Return the row of the table."""
        return (
            f"| {step} | {self.seconds:.1f} | {self.memory:.0f} | {self.meanwhile:.0f} | {self.minute:.0f} |"
        )


async def _phase(captures: Captures, phase: str, where: dict[str, Any], data: Path) -> Phase:
    """Run a phase in a separate process, which is ready before the measurement begins."""
    words = (sys.executable, "-m", "bench.settlement", "--phase", phase, "--where", json.dumps(where))
    process = await asyncio.create_subprocess_exec(
        *words, "--merchant", str(captures.merchant_id), "--data", str(data),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    await process.stdout.readline()
    began_at, began = captures.done, time.perf_counter()
    process.stdin.write(b"go\n")
    seconds, memory = json.loads(await process.stdout.readline())
    meanwhile = (captures.done - began_at) / (time.perf_counter() - began)
    await process.communicate()
    await asyncio.sleep(max(0.0, began + 60 - time.perf_counter()))
    return Phase(seconds, memory, meanwhile, (captures.done - began_at) / (time.perf_counter() - began))


async def _run(settings: config.Settings, where: dict[str, Any], movements: int, orders: int) -> list[str]:
    await runtime.migrated(settings, where)
    async with runtime.opened(settings, where, pool_size=8) as context:
        terms = MerchantTerms(name="Busy", defer_funds_capture=True)
        merchant = (await create_merchant(context, terms)).merchant
        merchant_id = merchant.merchant_id
        await fill(where, merchant_id, await _approved(context, merchant, "2125550142"), orders)
        await publish(context, merchant_id)
        await seed(where, merchant_id, movements)
        captures = Captures(context, merchant_id, orders)
        async with captures.running():
            await asyncio.sleep(5)
            before = await captures.rate(20)
            lining = await _phase(captures, "lines", where, settings.data_dir)
            between = await captures.rate(20)
            # The captures of this measurement get their lines too, as in normal operation.
            await _phase(captures, "lines", where, settings.data_dir)
            owner = await asyncpg.connect(**where)
            await owner.execute("UPDATE settlements SET close_at = now()")
            lines = await owner.fetchval("SELECT lines FROM settlements")
            closing = await _phase(captures, "close", where, settings.data_dir)
            after = await captures.rate(20)
            paid = await owner.fetchrow("SELECT last_line, amount FROM payouts")
            await owner.close()
    assert lines >= movements
    return [
        "| step | seconds | memory of the process, MiB | captures a second meanwhile | in the whole minute |",
        "|---|--:|--:|--:|--:|",
        f"| before | | | {before:.0f} | |",
        lining.row(f"{lines} lines are written"),
        f"| between | | | {between:.0f} | |",
        closing.row(f"the batch of {paid['last_line']} lines closes"),
        f"| after | | | {after:.0f} | |",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--movements", type=int, default=1_000_000)
    parser.add_argument("--orders", type=int, default=20_000)
    for name in ("phase", "where", "merchant", "data"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.phase:
        child(options.phase, options.where, options.merchant, options.data)
        return
    folder = Path(tempfile.mkdtemp(prefix="cuota-bench-"))
    folder.chmod(0o711)
    wide = Path(__file__).parents[1] / "tests" / "wide.toml"
    settings = replace(config.load({"CUOTA_DATA_DIR": str(folder / "data")}), policy=wide)
    try:
        with open_embedded(folder / "data") as embedded:
            lines = asyncio.run(_run(settings, dict(embedded.dsn_kwargs), options.movements, options.orders))
            print("\n".join(lines))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
