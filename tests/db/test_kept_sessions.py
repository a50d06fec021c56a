"""Idle sessions are kept for the next request: they are reused at once, released after a time, and replaced if they are
broken."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from cuota.db import kept_sessions
from cuota.db.open_pool import open_pool
from cuota.db.pool import Pool
from support.waiting import until


async def pid(pool: Pool) -> int:
    row = await pool.fetchrow("SELECT pg_backend_pid() AS pid")
    assert row is not None
    return int(row["pid"])


async def test_the_next_request_uses_the_session_of_the_last_one(own_database: dict[str, Any]) -> None:
    pool = await open_pool(own_database, 3)
    first = await pid(pool)
    assert [await pid(pool) for _ in range(5)] == [first] * 5
    assert pool.sizes() == (1, 1)
    await pool.close()


async def test_a_session_that_was_lost_while_idle_is_replaced(own_database: dict[str, Any]) -> None:
    pool = await open_pool(own_database, 1)
    owner = await asyncpg.connect(**own_database)
    lost = await pid(pool)
    await owner.execute("SELECT pg_terminate_backend($1::integer)", lost)
    [kept] = pool._kept._kept
    await until(lambda: not kept_sessions._usable(kept))
    assert await pid(pool) != lost
    await owner.close()
    await pool.close()


async def test_an_idle_session_goes_back_to_the_pool_after_a_time_and_still_works(
    own_database: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_sessions, "KEEP_SECONDS", 0.05)
    pool = await open_pool(own_database, 1)
    first = await pid(pool)
    await until(lambda: pool._pool.get_idle_size() == 1)
    assert pool.sizes() == (1, 1)
    assert await pid(pool) == first
    await pool.close()


async def test_closing_does_not_wait_until_idle_sessions_go_back(
    own_database: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_sessions, "KEEP_SECONDS", 3600.0)
    pool = await open_pool(own_database, 1)
    await pid(pool)
    async with asyncio.timeout(60):
        await pool.close()


async def test_no_request_gets_a_session_with_another_request_s_transaction(
    own_database: dict[str, Any],
) -> None:
    pool = await open_pool(own_database, 1)
    async with pool.session() as session:
        await session.execute("BEGIN")
    async with pool.session() as session:
        assert not session.is_in_transaction()
    await pool.close()


async def test_more_requests_than_sessions_are_all_served(own_database: dict[str, Any]) -> None:
    pool = await open_pool(own_database, 2)
    found = await asyncio.gather(*(pool.fetchrow("SELECT $1::integer AS number", n) for n in range(50)))
    assert [row["number"] for row in found if row is not None] == list(range(50))
    size, idle = pool.sizes()
    assert size == idle <= 2
    await pool.close()


async def test_closing_waits_for_a_session_that_is_in_use_and_ends_the_kept_ones(
    own_database: dict[str, Any],
) -> None:
    pool = await open_pool(own_database, 2)
    await asyncio.gather(*(pool.fetchrow("SELECT pg_sleep(0.05)") for _ in range(2)))
    owner = await asyncpg.connect(**own_database)
    slow = asyncio.create_task(pool.fetchrow("SELECT pg_sleep(0.3), 7 AS seven"))
    await until_counted(owner, 1, "state = 'active'")
    await pool.close()
    row = await slow
    assert row is not None
    assert row["seven"] == 7
    await until_counted(owner, 0)
    await owner.close()


async def until_counted(owner: asyncpg.Connection[Any], count: int, where: str = "true") -> None:
    """Wait until the database has this many other sessions of this kind."""
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    async with asyncio.timeout(60):
        while await owner.fetchval(f"{sql} AND {where}") != count:  # noqa: ASYNC110 - the database sets no event
            await asyncio.sleep(0.01)
