"""`python -m bench.merchants`: the operator's list of 100,000 merchants, on two workers.

Four people open pages of the list, search and filter at the same time. One merchant in fifty is in onboarding, one in 500 suspended, one in
a hundred revoked. Prints a table. `--merchants 10000` is a tenth of that.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import asyncpg

from bench import service
from bench.__main__ import temporary, with_postgres
from bench.dashboard import print_times, signed_in
from bench.service import BenchService

# Names of three words, as shops have them, and a number that makes each unique.
_MERCHANTS = """INSERT INTO merchants (merchant_id, name, minimum, maximum, defer_funds_capture, profile, currency, origins,
        signing_secret, webhook_secret, created_at, onboarding, suspended_at)
    SELECT gen_random_uuid(), initcap(substr(md5('a' || n), 1, 6) || ' ' || substr(md5('b' || n), 1, 8)) || ' Shop ' || n, 100, 200000,
        false, 'strict', 'USD', '{}', 'x', 'x', now() - n * interval '1 minute', CASE WHEN n % 50 = 0 THEN 'open' ELSE 'none' END,
        CASE WHEN n % 500 = 0 THEN now() END
    FROM generate_series(1, $1::bigint) n"""
_CREDENTIALS = """INSERT INTO credentials (client_id, merchant_id, secret_hash, created_at, revoked_at)
    SELECT 'bench' || merchant_id, merchant_id, 'x', created_at, CASE WHEN name LIKE '%7_' AND name LIKE '%_3' THEN now() END
    FROM merchants WHERE signing_secret = 'x'"""
LIST = "/operator/merchants"


async def fill(where: dict[str, Any], merchants: int) -> None:
    """Write the merchants as the owner of the tables."""
    owner = await asyncpg.connect(**where)
    try:
        await owner.execute(_MERCHANTS, merchants)
        await owner.execute(_CREDENTIALS)
        await owner.execute("VACUUM ANALYZE")
        await owner.execute("CHECKPOINT")
    finally:
        await owner.close()


def pages(merchants: int) -> dict[str, Callable[[], str]]:
    """Return, for each kind of request, a function that returns an address, sometimes a random one."""

    def letters(count: int) -> str:
        return "".join(random.choices("0123456789abcdef", k=count))

    return {
        "first page, by name": lambda: LIST,
        "a page in the middle": lambda: f"{LIST}?after={letters(4)}",
        "newest first": lambda: f"{LIST}?sort=newest",
        "active": lambda: f"{LIST}?state=active",
        "in onboarding": lambda: f"{LIST}?state=onboarding",
        "suspended, newest first": lambda: f"{LIST}?state=suspended&sort=newest",
        "revoked": lambda: f"{LIST}?state=revoked",
        "to check": lambda: f"{LIST}?state=check",
        "search: a word that all have": lambda: f"{LIST}?q=shop",
        "search: a part of a few names": lambda: f"{LIST}?q={letters(4)}",
        "search: one merchant": lambda: f"{LIST}?q=shop+{random.randint(merchants // 2, merchants)}",
        "search: nobody": lambda: f"{LIST}?q=zzzz{letters(3)}",
        "search: nobody, suspended": lambda: f"{LIST}?state=suspended&q=zzzz{letters(3)}",
        "an id that nobody has": lambda: f"{LIST}?q={uuid4()}",
    }


async def run(place: BenchService, merchants: int) -> None:
    """Measure each kind of request, and print a row for it."""
    async with signed_in(place, "--operator") as http:
        await print_times(http, pages(merchants))


def main() -> None:
    """Fill a database, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--merchants", type=int, default=100_000)
    merchants = parser.parse_args().merchants
    with temporary() as folder:
        place = BenchService(folder / "data", service.free_port())
        with with_postgres(place) as where:
            service.merchant(place)
            asyncio.run(fill(where, merchants))
            with service.serving(place, 2):
                asyncio.run(run(place, merchants))


if __name__ == "__main__":
    main()
