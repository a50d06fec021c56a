"""`python -m bench.decision`: measures a risk decision for a consumer with 100 earlier orders, among many other consumers.

Measures the whole decision (one read, then the computation) and the read alone. Takes less than a minute and prints a
table.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg

from bench.past import consumer, fill
from cuota import config
from cuota.core.risk.decision import decide
from cuota.core.risk.facts import Facts
from cuota.core.risk.signal import SignalKind
from cuota.db.embedded.server import open_embedded
from cuota.db.risk import history
from cuota.db.risk.history import HistoryQuery
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import MerchantTerms, create_merchant
from cuota.run import runtime

CONSUMERS, ORDERS = 300, 100
ROUNDS = 2_000


async def measure(context: Context, where: dict[str, Any], rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds of each round, by what was measured."""
    new = await create_merchant(context, MerchantTerms(name="Bench"))
    owner = await asyncpg.connect(**where)
    await fill(owner, new.merchant.merchant_id, CONSUMERS, ORDERS)
    ids = [await consumer(owner, number) for number in range(1, CONSUMERS + 1)]
    await owner.close()

    def asked(round_: int) -> HistoryQuery:
        number, now = round_ % CONSUMERS, datetime.now(UTC)
        seen = {kind: hashlib.sha256(f"{kind}{number + 1}".encode()).digest() for kind in SignalKind}
        since = {kind: now - timedelta(days=30) for kind in SignalKind}
        return HistoryQuery(new.merchant.merchant_id, uuid4(), ids[number], now, since, seen)

    async def read(round_: int) -> None:
        await history.read(context.pool, asked(round_))

    async def decided(round_: int) -> None:
        seen = await history.read(context.pool, asked(round_))
        facts = Facts(10_000, "USD", 100, 200_000, seen.history, seen.velocity)
        made = decide(facts, context.policy)
        assert Facts.of_inputs(made.inputs) == facts

    works = {"the one read": read, "read and decide": decided}
    return {name: await _timed(work, rounds) for name, work in works.items()}


async def _timed(work: Callable[[int], Awaitable[None]], rounds: int) -> list[float]:
    for warm in range(50):
        await work(warm)
    spent = []
    for round_ in range(rounds):
        began = time.perf_counter()
        await work(round_)
        spent.append((time.perf_counter() - began) * 1000)
    return spent


async def _run(settings: config.Settings, where: dict[str, Any], rounds: int) -> None:
    await runtime.migrated(settings, where)
    async with runtime.opened(settings, where, pool_size=2) as context:
        found = await measure(context, where, rounds)
    print(
        f"{ORDERS} earlier orders each of {CONSUMERS} consumers; {rounds} rounds, one at a time; milliseconds"
    )
    for name, spent in found.items():
        cuts = statistics.quantiles(spent, n=100)
        print(f"{name:16}  p50 {cuts[49]:6.2f}  p99 {cuts[98]:6.2f}  most {max(spent):6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="cuota-bench-"))
    folder.chmod(0o711)
    try:
        settings = config.load({"CUOTA_DATA_DIR": str(folder / "data")})
        with open_embedded(settings.data_dir) as embedded:
            asyncio.run(_run(settings, dict(embedded.dsn_kwargs), options.rounds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
