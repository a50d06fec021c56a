"""0046: a table that has rows is analyzed with the new number of merchants, so that plans change at once."""

from __future__ import annotations

import pytest

from cuota.db.migrate import files
from support.own_service import Own

NAME = "0046_large_merchants"
SHOWN = "SELECT n_distinct FROM pg_stats WHERE tablename = 'orders' AND attname = 'merchant_id'"


@pytest.mark.plain_postgresql("a distributed table has no such setting")
async def test_a_table_with_rows_is_analyzed(own: Own) -> None:
    for _ in range(10):
        await own.merchant.create()
    async with own.owner() as owner:
        await owner.execute("ALTER TABLE orders ALTER COLUMN merchant_id RESET (n_distinct); ANALYZE orders")
        assert await owner.fetchval(SHOWN) != 2
        await owner.execute(dict(files())[NAME])
        assert await owner.fetchval(SHOWN) == 2
