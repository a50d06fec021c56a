"""`python -m bench.row_security`: compares the speed with and without row-level security by merchant, in alternating rounds.

Two databases on one server hold the same data; one of them has row-level security. Orders are created, read and
captured by the service's own flows in one session. Two merchants alternate, so that each statement belongs to a different
merchant than the statement before, which is the most expensive case. CPU time is that of this process and of its database
session. Takes less than three minutes and prints a table.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg

from bench.seed import fill
from bench.work import ORDER_JSON, order_id
from cuota import config
from cuota.core.checkout.card import read_card
from cuota.core.consumer import Address, Profile
from cuota.core.merchant import Merchant
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.db import row_security
from cuota.db.checkout.loaded import Checkout
from cuota.db.embedded.server import open_embedded
from cuota.db.order import orders
from cuota.db.row_security import narrow
from cuota.flows.checkout.identify_consumer import check_code, give_details, send_code
from cuota.flows.checkout.submit_checkout import submit_checkout
from cuota.flows.checkout.take_step import details_hash, load, open_checkout, propose
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import MerchantTerms, create_merchant
from cuota.flows.order.capture_order import capture_order
from cuota.flows.order.create_order import create_order
from cuota.run import runtime
from cuota.web.api.order_body import read_order_body
from cuota.web.body import parse_object

TICKS = os.sysconf("SC_CLK_TCK")
PROFILE = Profile(
    "Jordan",
    "Rivera",
    "jordan@mail.example",
    Address("1480 Mission Street", "", "San Francisco", "CA", "94103"),
)


@dataclass
class ComparedService:
    """One of the two databases: a service, two merchants, the process of its session, and the number of used orders."""

    context: Context
    merchants: list[Merchant]
    backend: int
    used: int = 0

    async def one(self, work: str, number: int) -> None:
        """Create, read or capture one order, as the request of a merchant does."""
        merchant = self.merchants[number % 2]
        narrow(merchant.merchant_id)
        if work == "create":
            body = read_order_body(parse_object(ORDER_JSON), merchant, https_only=False)
            await create_order(self.context, merchant, body)
        elif work == "read":
            await orders.read_record(self.context.pool, merchant.merchant_id, order_id(number // 2 + 1))
        else:
            self.used += 1
            asked = MovementRequest(MovementKind.CAPTURE, "bench", 2500)
            await capture_order(self.context, merchant.merchant_id, order_id(self.used // 2 + 1), asked)

    def cpu(self) -> float:
        """Return the seconds of CPU time that this process and its database session have used."""
        fields = Path(f"/proc/{self.backend}/stat").read_text().rpartition(")")[2].split()
        return time.process_time() + (int(fields[11]) + int(fields[12])) / TICKS


async def _approved(context: Context, merchant: Merchant, phone: str) -> Any:
    """Return the id of an approved order, which is then copied."""
    body = read_order_body(parse_object(ORDER_JSON), merchant, https_only=False)
    created = await create_order(context, merchant, body)
    opened = await open_checkout(context, merchant.merchant_id, created.token)
    assert opened is not None
    secret = opened[1]

    async def seen() -> Checkout:
        found = await load(context, merchant.merchant_id, created.order_id, secret)
        assert found is not None
        return found

    await send_code(context, await seen(), phone)
    secret = await check_code(context, await seen(), "123456")
    await give_details(context, await seen(), PROFILE)
    terms = propose(context, await seen(), PROFILE)
    processor = context.rails.card.sandbox
    assert processor is not None
    card = read_card("4242 4242 4242 4242", "12/39", "123", datetime.now(UTC).date())
    paying, token = await seen(), await processor.tokenize(card)
    await submit_checkout(
        context,
        paying,
        token,
        terms.agreement.hash,
        "http://127.0.0.1/back",
        shown_details=details_hash(paying),
    )
    return created.order_id


@contextlib.asynccontextmanager
async def side(settings: config.Settings, where: dict[str, Any], pool: int) -> AsyncIterator[ComparedService]:
    """Prepare one of the two databases, with `pool` approved orders for each merchant."""
    async with runtime.opened(settings, where, pool_size=1) as context:
        merchants = []
        # Two consumers, because copied orders count as debt, and a consumer's debt is limited.
        for name, phone in (("One", "2125550142"), ("Two", "2125550143")):
            terms = MerchantTerms(name=name, defer_funds_capture=True)
            merchants.append((await create_merchant(context, terms)).merchant)
            await fill(where, merchants[-1].merchant_id, await _approved(context, merchants[-1], phone), pool)
        row = await context.pool.fetchrow("SELECT pg_backend_pid() AS pid")
        assert row is not None
        yield ComparedService(context, merchants, row["pid"])


async def measure(
    sides: dict[str, ComparedService], rounds: int, each: int
) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return (CPU seconds, real seconds) of each round, by database and operation.

    The databases take turns in going first.
    """
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for number in range(rounds + 1):
        for work in ("create", "read", "capture"):
            for name in sorted(sides, reverse=bool(number % 2)):
                one: Callable[[str, int], Awaitable[None]] = sides[name].one
                cpu, began = sides[name].cpu(), time.perf_counter()
                for count in range(each):
                    await one(work, count)
                spent = (sides[name].cpu() - cpu, time.perf_counter() - began)
                if number:  # the first round prepares statements
                    found.setdefault((name, work), []).append(spent)
    return found


def table(found: dict[tuple[str, str], list[tuple[float, float]]], each: int) -> list[str]:
    """Return the medians, and how much more one database costs than the other."""
    lines = [
        "| work | CPU off | CPU on | more | a second off | a second on | fewer |",
        "|---|---|---|---|---|---|---|",
    ]
    for work in ("create", "read", "capture"):
        cpu = [statistics.median(spent for spent, _ in found[name, work]) / each for name in ("off", "on")]
        rate = [each / statistics.median(real for _, real in found[name, work]) for name in ("off", "on")]
        more, fewer = cpu[1] / cpu[0] - 1, 1 - rate[1] / rate[0]
        lines.append(
            f"| {work} | {cpu[0] * 1e6:.0f} µs | {cpu[1] * 1e6:.0f} µs | {more:.1%} | {rate[0]:.0f} | {rate[1]:.0f} | {fewer:.1%} |"
        )
    return lines


async def _run(settings: config.Settings, server: dict[str, Any], rounds: int, each: int) -> list[str]:
    await runtime.migrated(settings, server)
    owner = await asyncpg.connect(**{**server, "database": "postgres"})
    for name in ("off", "on"):
        await owner.execute(f'CREATE DATABASE "bench_{name}" TEMPLATE cuota STRATEGY file_copy')
    await owner.close()
    places = {name: {**server, "database": f"bench_{name}"} for name in ("off", "on")}
    secured = await asyncpg.connect(**places["on"])
    await row_security.turn(secured, on=True)
    await secured.close()
    pool = (rounds + 1) * each // 2 + 2
    async with side(settings, places["off"], pool) as off, side(settings, places["on"], pool) as on:
        return table(await measure({"off": off, "on": on}, rounds, each), each)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--each", type=int, default=200)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="cuota-bench-"))
    folder.chmod(0o711)
    wide = Path(__file__).parents[1] / "tests" / "wide.toml"
    settings = replace(config.load({"CUOTA_DATA_DIR": str(folder / "data")}), policy=wide)
    try:
        with open_embedded(folder / "data") as embedded:
            print(
                "\n".join(
                    asyncio.run(_run(settings, dict(embedded.dsn_kwargs), options.rounds, options.each))
                )
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
