"""One statement counts a one-time code in all counters or in none."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from cuota.db.checkout import codes
from cuota.db.open_pool import open_pool
from cuota.db.pool import Pool

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
A, B, C = (bytes([n]) * 32 for n in range(3))


async def sent(pool: Pool) -> dict[bytes, int]:
    rows = await pool.fetch("SELECT phone_hash, sent FROM codes_sent")
    return {bytes(row["phone_hash"]): row["sent"] for row in rows}


async def test_a_code_that_one_full_counter_refuses_is_counted_in_no_counter(
    own_database: dict[str, Any],
) -> None:
    pool = await open_pool(own_database, 2)
    assert await codes.count(pool, [(A, 9), (B, 1), (C, 1)], NOW) == set()
    assert await codes.count(pool, [(A, 9), (B, 1), (C, 1)], NOW) == {B, C}
    assert await codes.count(pool, [(A, 9), (C, 2)], NOW) == set()
    assert await sent(pool) == {A: 2, B: 1, C: 2}
    await pool.close()


async def test_concurrent_codes_never_exceed_a_limit(own_database: dict[str, Any]) -> None:
    pool = await open_pool(own_database, 8)
    found = await asyncio.gather(
        *(codes.count(pool, [(A, 100), (B, 7)] if n % 2 else [(B, 7), (A, 100)], NOW) for n in range(24))
    )
    assert sorted(map(len, found)) == [0] * 7 + [1] * 17
    assert await sent(pool) == {A: 7, B: 7}
    await pool.close()


async def test_a_code_without_any_limit_is_never_refused(own_database: dict[str, Any]) -> None:
    pool = await open_pool(own_database, 1)
    assert await codes.count(pool, [], NOW) == set()
    await pool.close()
