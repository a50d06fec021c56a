"""Two transactions that wait for each other: a statement that PostgreSQL ends for that is run once more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from cuota.db.open_pool import open_pool
from cuota.db.pool import Pool
from support.db.locks import deadlocked

TABLES = """CREATE TABLE counters (number integer PRIMARY KEY, counted integer NOT NULL DEFAULT 0);
    INSERT INTO counters VALUES (1), (2); GRANT SELECT, UPDATE ON counters TO cuota_app"""
# Advisory locks are given in the order in which they were asked for. So the statement that runs once more waits for the other one.
COUNT_ALL = """WITH locked AS MATERIALIZED (SELECT pg_advisory_xact_lock(number) FROM generate_series(1, 3) AS number)
    UPDATE counters SET counted = counted + $1 WHERE (SELECT count(*) FROM locked) = 3 RETURNING 1"""
LOCKS = tuple(f"SELECT pg_advisory_xact_lock({number})" for number in (1, 2, 3))


@pytest.fixture
async def pool(own_database: dict[str, Any]) -> AsyncIterator[Pool]:
    owner = await asyncpg.connect(**own_database)
    await owner.execute(TABLES)
    await owner.close()
    opened = await open_pool(own_database, 2)
    yield opened
    await opened.close()


async def counted(pool: Pool) -> list[int]:
    return [row["counted"] for row in await pool.fetch("SELECT counted FROM counters")]


@pytest.mark.parametrize("method", ["fetchrow", "fetch", "execute"])
async def test_a_statement_that_lost_a_deadlock_is_applied_once(
    own_database: dict[str, Any], pool: Pool, method: str
) -> None:
    await deadlocked(own_database, lambda: getattr(pool, method)(COUNT_ALL, 1), *LOCKS)
    assert await counted(pool) == [1, 1]


async def test_inside_a_transaction_only_the_caller_can_begin_again(
    own_database: dict[str, Any], pool: Pool
) -> None:
    async def count() -> None:
        async with pool.session() as session, session.transaction():
            await session.fetch(COUNT_ALL, 1)

    with pytest.raises(asyncpg.DeadlockDetectedError):
        await deadlocked(own_database, count, *LOCKS)
    assert await counted(pool) == [0, 0]
