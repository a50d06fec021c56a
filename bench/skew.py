"""`python -m bench.skew`: one large merchant among many small ones, when payments of all merchants are due at the same hour.

Captures orders of a merchant with 60,000 orders, with 1 and 16 clients, beside 40,000 merchants with five orders each. Then finds
due orders, when all 260,000 orders are due. Prints a table, and takes a minute. PostgreSQL plans each statement once for all
merchants, so these plans must be good for the largest merchant and for the smallest.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from bench import report, seed, service
from bench.client import LoadJob, drive
from bench.overload import _place
from cuota.db.order.due import due_orders
from cuota.db.pool import SESSION

LARGE, SMALL, EACH = 60_000, 40_000, 5
SECONDS, FINDS = 4.0, 20
_COLUMNS = """SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'orders'
    AND is_generated = 'NEVER' ORDER BY ordinal_position"""


async def add_small_merchants(where: dict[str, Any]) -> None:
    """Copy orders of the large merchant to merchants that exist nowhere else."""
    owner = await asyncpg.connect(**where)
    try:
        names = [row["column_name"] for row in await owner.fetch(_COLUMNS)]
        values = {
            "merchant_id": f"md5((n % {SMALL})::text)::uuid",
            "order_id": "gen_random_uuid()",
            "token": "gen_random_uuid()",
        }
        async with owner.transaction():
            await owner.execute("SET LOCAL session_replication_role = replica")
            await owner.execute(
                f"""INSERT INTO orders ({", ".join(names)}) SELECT {", ".join(values.get(name, f"o.{name}") for name in names)}
                FROM (SELECT * FROM orders LIMIT 1) o, generate_series(1, {SMALL * EACH}) n"""
            )
        await owner.execute("VACUUM (ANALYZE)")
    finally:
        await owner.close()


async def find(where: dict[str, Any]) -> float:
    """Return the milliseconds in which a background job finds due orders, once all orders are due."""
    connection = await asyncpg.connect(**where, server_settings=SESSION)
    try:
        later = datetime.now(UTC) + timedelta(days=900)
        began = time.perf_counter()
        for _ in range(FINDS):
            await due_orders(connection, later, 100)
        return (time.perf_counter() - began) / FINDS * 1000
    finally:
        await connection.close()


def main() -> None:
    with _place() as (place, where):
        with service.serving(place, 1):
            merchant = service.merchant(place, "Large")
            token = service.token(place, merchant)
            model = seed.approved_order(place.url, token)
        asyncio.run(seed.fill(where, UUID(merchant["merchantId"]), model, LARGE))
        asyncio.run(add_small_merchants(where))
        lines = [f"| captures a second, {clients} clients | {{:,.0f}} |" for clients in (1, 16)]
        with service.serving(place, 1):
            for number, clients in enumerate((1, 16)):
                first = 1 + number * LARGE // 2
                job = LoadJob(
                    "capture", place.port, token, clients, 0.5, SECONDS, first, LARGE // 2, cycle=False
                )
                lines[number] = lines[number].format(drive(job).answers / SECONDS)
        lines.append(f"| milliseconds to find due orders | {asyncio.run(find(where)):,.0f} |")
    print("\n".join([", ".join(report.machine()), "", "| | |", "|---|--:|", *lines]))


if __name__ == "__main__":
    main()
