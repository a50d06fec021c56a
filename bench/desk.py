"""`python -m bench.desk`: the merchant's dashboard of a shop with a million orders, on two workers.

Four people search, filter and open orders at the same time, each request for a different order. Then one of them exports all
orders while four clients capture orders, and the number of captures a second is compared with the time before. Prints two tables.
`--orders 100000` uses a tenth of the orders.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable
from itertools import islice
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import psutil

from bench import growth, seed, service
from bench.__main__ import temporary, with_postgres
from bench.dashboard import PEOPLE, print_times, signed_in
from bench.service import BenchService
from bench.work import order_id, order_id_sql
from cuota import config
from cuota.core.desk.terms import terms_of
from cuota.db.vault import Vault
from cuota.flows.desk.index_orders import hashed
from cuota.run import runtime

# Orders differ by reference, amount and state: one in fifty was declined, one in forty refunded, one in a thousand disputed.
_VARIED = (
    f"""UPDATE order_details d SET reference = 'W-' || n FROM generate_series($2::bigint, $3::bigint) n
        WHERE d.merchant_id = $1 AND d.order_id = {order_id_sql("n")}""",
    f"""UPDATE orders o SET status = CASE WHEN n % 50 = 0 THEN 'Declined' ELSE status END,
        refunded = CASE WHEN n % 40 = 1 THEN 100 ELSE 0 END, captured = CASE WHEN n % 40 = 1 THEN 2500 ELSE captured END,
        open_disputes = CASE WHEN n % 1000 = 3 THEN 1 ELSE 0 END, paused_at = CASE WHEN n % 1000 = 3 THEN now() END
        FROM generate_series($2::bigint, $3::bigint) n WHERE o.merchant_id = $1 AND o.order_id = {order_id_sql("n")}""",
)


def person(number: int) -> dict[str, str]:
    """Return the consumer of an order. 20,000 names repeat, as names do."""
    return {
        "givenNames": f"Given{_letters(number % 200)}", "surname": f"Surname{_letters(number % 20_000)}",
        "email": f"person{number}@mail.example", "phoneNumber": f"{2_120_000_000 + 2_000_000 + number}",
    }  # fmt: skip


def _letters(number: int) -> str:
    return "".join(chr(97 + int(digit)) for digit in str(number))


async def write_terms(where: dict[str, Any], key: Vault, merchant_id: UUID, orders: int) -> None:
    """Write the terms as the job does, with a consumer, a card and an amount for each order."""
    rows = (
        (merchant_id, hashed(key, merchant_id, term), order_id(number))
        for number in range(1, orders + 1)
        for term in terms_of(10_000 + number % 5000, [person(number)], [f"{number % 10_000:04d}"])
    )
    owner = await asyncpg.connect(**where)
    try:
        await owner.execute("SET session_replication_role = replica")
        while batch := list(islice(rows, 500_000)):
            await owner.copy_records_to_table(
                "order_terms", records=batch, columns=("merchant_id", "term", "order_id")
            )
        await owner.execute("VACUUM ANALYZE order_terms")
    finally:
        await owner.close()


# As many calls as orders, from 20 days ago on. One in fifty was refused.
_CALLS = f"""INSERT INTO api_requests (merchant_id, request_id, client_id, address, method, route, order_id, status, code, ms, keyed,
        request, response)
    SELECT $1, (lpad(to_hex((extract(epoch FROM now() - interval '20 days') * 1000)::bigint + n), 12, '0')::text || '70008000000000000000')::uuid,
        'client_bench', '203.0.113.7', 'POST', '/order/{{order_id}}/capture', {order_id_sql("n")},
        CASE WHEN n % 50 = 0 THEN 422 ELSE 200 END, CASE WHEN n % 50 = 0 THEN 'capture_exceeds_authorized' END, 3.5, false,
        '{{"amount":"0.01","merchantReference":"bench"}}', '{{"merchantReference":"bench","amount":0.01}}'
    FROM generate_series($2::bigint, $3::bigint) n"""


async def vary(where: dict[str, Any], merchant_id: UUID, orders: int) -> None:
    owner = await asyncpg.connect(**where)
    try:
        await owner.execute("SET session_replication_role = replica")
        for first in range(1, orders + 1, growth.BATCH):
            for sql in (*_VARIED, _CALLS):
                await owner.execute(sql, merchant_id, first, min(first + growth.BATCH - 1, orders))
        await owner.execute("VACUUM ANALYZE")
        await owner.execute("CHECKPOINT")
    finally:
        await owner.close()


def pages(orders: int) -> dict[str, Callable[[], str]]:
    """Return one address for each kind of request, for an order chosen at random."""

    def one() -> int:
        return random.randint(1, orders)

    return {
        "first page": lambda: "/desk",
        "newest orders": lambda: "/desk/orders",
        "search: reference": lambda: f"/desk/orders?q=W-{one()}",
        "search: e-mail": lambda: f"/desk/orders?q=person{one()}%40mail.example",
        "search: phone": lambda: f"/desk/orders?q={2_122_000_000 + one()}",
        "search: last name": lambda: f"/desk/orders?q=surname{_letters(one() % 20_000)}",
        "search: first name": lambda: f"/desk/orders?q=given{_letters(one() % 200)}",
        "search: last four digits": lambda: f"/desk/orders?q={one() % 10_000:04d}",
        "search: amount": lambda: f"/desk/orders?q={100 + one() % 50}.{one() % 100:02d}",
        "filter: refunded": lambda: "/desk/orders?view=refunded",
        "filter: declined, oldest first": lambda: "/desk/orders?view=declined&sort=oldest",
        "filter: disputed": lambda: "/desk/orders?view=disputed",
        "largest amount first": lambda: "/desk/orders?sort=largest",
        "largest amount first, far behind": lambda: f"/desk/orders?sort=largest&after={order_id(one())}",
        "filter: declined, smallest first": lambda: "/desk/orders?view=declined&sort=smallest",
        "search: first name, largest first": lambda: (
            f"/desk/orders?sort=largest&q=given{_letters(one() % 200)}"
        ),
        "one order": lambda: f"/desk/orders/{order_id(one())}",
        "API requests": lambda: "/desk/requests",
        "API requests: refused": lambda: "/desk/requests?status=4",
        "API requests: failed (there are none)": lambda: "/desk/requests?status=5",
        "API requests of one order": lambda: f"/desk/requests?q={order_id(one())}",
    }


class Capturing:
    """Four clients that capture orders through the API, one cent of each order."""

    def __init__(self, http: httpx.AsyncClient, orders: int) -> None:
        self._http, self._orders, self.done, self._number = http, orders, 0, 0

    async def client(self) -> None:
        while True:
            self._number += 1
            number = self._number * 7919 % self._orders + 1
            if number % 50 == 0:
                continue
            body = {"amount": "0.01", "merchantReference": f"bench {self._number}"}
            (await self._http.post(f"/order/{order_id(number)}/capture", json=body)).raise_for_status()
            self.done += 1

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self.client()) for _ in range(PEOPLE)]
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


async def export(http: httpx.AsyncClient) -> tuple[int, float]:
    """Export every order. Return the number of rows and the seconds."""
    csrf = (await http.get("/desk/orders/export")).text.partition('name="csrf" value="')[2][:64]
    rows, began = -1, time.perf_counter()
    form = {"csrf": csrf, "reason": "bench"}
    async with http.stream("POST", "/desk/orders/export", data=form) as answer:
        answer.raise_for_status()
        async for chunk in answer.aiter_bytes():
            rows += chunk.count(b"\r\n")
    return rows, time.perf_counter() - began


def memory(workers: list[psutil.Process]) -> float:
    """Return the memory of the worker that uses the most, in MiB."""
    return float(max(worker.memory_info().rss for worker in workers) / 2**20)


async def run(place: BenchService, orders: int, workers: list[psutil.Process], name: str, token: str) -> None:
    async with signed_in(place, "--merchant", name) as http:
        await print_times(http, pages(orders))
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=place.url, headers=headers, trust_env=False, timeout=60) as api:
            captures = Capturing(api, orders)
            async with captures.running():
                await asyncio.sleep(3)
                before, kept = await captures.rate(15), memory(workers)
                began_at, began = captures.done, time.perf_counter()
                rows, seconds = await export(http)
                meanwhile = (captures.done - began_at) / (time.perf_counter() - began)
                after = await captures.rate(15)
    print(
        f"\n{rows} orders were exported in {seconds:.0f} s. The larger worker had {kept:.0f} MiB before and {memory(workers):.0f} MiB after."
    )
    print(f"Captures a second: {before:.0f} before, {meanwhile:.0f} meanwhile, {after:.0f} after.")


async def fill(
    place: BenchService, where: dict[str, Any], merchant_id: UUID, model: UUID, orders: int
) -> None:
    """Insert the shop's past orders."""
    await growth.grow(where, merchant_id, model, 0, orders)
    await vary(where, merchant_id, orders)
    settings = config.load({"CUOTA_DATA_DIR": str(place.data)})
    async with runtime.opened(settings, where, pool_size=2, decides=False) as context:
        await write_terms(where, context.vault, merchant_id, orders)


def main() -> None:
    """Fill a database, measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=1_000_000)
    orders = parser.parse_args().orders
    with temporary() as folder:
        place = BenchService(folder / "data", service.free_port())
        with with_postgres(place) as where:
            made = service.merchant(place)
            with service.serving(place, 1):
                token = service.token(place, made)
                model = seed.approved_order(place.url, token)
            asyncio.run(fill(place, where, UUID(made["merchantId"]), model, orders))
            with service.serving(place, 2) as workers:
                asyncio.run(run(place, orders, workers, "Shop", token))


if __name__ == "__main__":
    main()
