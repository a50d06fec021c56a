"""Background work finds the due orders of all merchants in one statement, and no merchant delays the others."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from cuota.db.order.due import EACH, due_orders
from support.makers import make_merchant
from support.own_service import Own

DAY = timedelta(days=1)


async def make_due(own: Own, merchant_id: UUID, count: int, days: int) -> set[tuple[UUID, UUID]]:
    """Insert open orders that were due this many days ago."""
    at = own.context.now() - days * DAY
    async with own.owner() as owner:
        rows = await owner.fetch(
            """INSERT INTO orders (merchant_id, order_id, token, version, status, currency, amount, fee, auto_capture, transfers,
                events, created_at, expires_at, due_at) SELECT $1, gen_random_uuid(), gen_random_uuid(), 1, 'Created', 'USD', 10000,
                0, true, 0, 0, $2, $2, $2 FROM generate_series(1, $3) RETURNING order_id""",
            merchant_id, at, count,
        )  # fmt: skip
    return {(merchant_id, row["order_id"]) for row in rows}


async def test_one_statement_finds_the_due_orders_of_all_merchants(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = set()
    for _ in range(3):
        async with make_merchant(own.service) as merchant:
            wanted |= await make_due(own, merchant.merchant_id, 4, 1)
    sent = []
    real = asyncpg.Connection.fetch

    async def noting(self: asyncpg.Connection, sql: str, *values: object, **more: object) -> object:
        sent.append(sql)
        return await real(self, sql, *values, **more)

    monkeypatch.setattr(asyncpg.Connection, "fetch", noting)
    found = await due_orders(own.context.pool, own.context.now(), 100)
    monkeypatch.undo()
    assert len(found) == len(wanted)
    assert set(found) == wanted
    assert len([sql for sql in sent if "orders" in sql]) == 1


async def test_the_oldest_are_found_first(own: Own) -> None:
    oldest = await make_due(own, own.merchant.merchant_id, 3, 2)
    await make_due(own, own.merchant.merchant_id, EACH, 1)
    assert oldest <= set(await due_orders(own.context.pool, own.context.now(), 3))


async def test_an_order_that_is_due_later_is_not_found(own: Own) -> None:
    await make_due(own, own.merchant.merchant_id, 1, -1)
    assert await due_orders(own.context.pool, own.context.now(), 100) == []


async def test_a_merchant_with_very_many_due_orders_does_not_delay_the_others(own: Own) -> None:
    await make_due(own, own.merchant.merchant_id, 30, 2)
    async with make_merchant(own.service) as other:
        later = await make_due(own, other.merchant_id, 2, 1)
        found = await due_orders(own.context.pool, own.context.now(), 10)
    assert later <= set(found)
    assert len(found) == len(set(found)) <= 10 + EACH + len(later)
