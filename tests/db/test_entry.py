"""The statements of one merchant's orders go through another node if one is named, and through the first one while that is down.

Two databases of one plain PostgreSQL are the two nodes. The address of the second names a folder of sockets that a test removes, as when
the node dies, and creates again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from cuota.core.refusal import Code, Refused
from cuota.db import entry
from cuota.db.gathered import Gathered
from cuota.db.open_pool import open_pool
from cuota.db.pool import GONE, Pool
from support.db.template import Template

pytestmark = pytest.mark.plain_postgresql("a cluster has no second database with the same tables")
HERE = "SELECT current_database()::text AS name"


class Node:
    """The second node, which can be unreachable."""

    def __init__(self, where: dict[str, Any], folder: Path) -> None:
        self._link, self._sockets = folder / "sockets", Path(str(where["host"]))
        self.name = str(where["database"])
        self.url = f"postgresql://{where['user']}@/{self.name}?host={self._link}"

    def up(self) -> None:
        self._link.symlink_to(self._sockets)

    async def down(self, owner: asyncpg.Connection) -> None:
        """Refuse new connections, and end those that exist."""
        self._link.unlink()
        await owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", self.name
        )


@pytest.fixture
async def node(template: Template, tmp_path: Path) -> AsyncIterator[Node]:
    async with template.copied() as where:
        yield Node(where, tmp_path)


@pytest.fixture
async def pool(own_database: dict[str, Any], node: Node) -> AsyncIterator[Pool]:
    opened = await open_pool(own_database, 2, entry_url=node.url)
    yield opened
    await opened.close()


async def one(session: Any, _: object) -> str:
    return str((await session.fetchrow(HERE))["name"])


async def many(session: Any, asked: Any) -> list[str]:
    return [await one(session, each) for each in asked]


async def after_a_loss(pool: Pool) -> str:
    """Ask again, as the service does, while the driver has not noticed yet that its session ended."""
    while True:
        try:
            return await one(pool.entry, None)
        except GONE:
            continue


WRITES = Gathered(one, many)
READS = Gathered(one, many, at_once=True)


async def test_the_orders_statements_run_at_the_named_node_and_all_others_at_the_first(
    pool: Pool, node: Node, own_database: dict[str, Any]
) -> None:
    node.up()
    assert await one(pool, None) == own_database["database"]
    assert await one(pool.entry, None) == node.name
    merchant_id = uuid4()
    found = await asyncio.gather(
        *(pool.together(kind, merchant_id, n) for n in range(20) for kind in (READS, WRITES))
    )
    assert set(found) == {node.name}
    async with pool.apart.session() as apart:
        assert await one(apart, None) == own_database["database"]


async def test_while_the_named_node_is_down_the_first_one_answers_and_later_the_named_one_again(
    pool: Pool, node: Node, own_database: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = own_database["database"]
    owner = await asyncpg.connect(**own_database)
    assert await one(pool.entry, None) == first
    node.up()
    assert await one(pool.entry, None) == first, "the node is not tried again at once"
    monkeypatch.setattr(entry, "RETRY_SECONDS", 0.0)
    pool.entry._retry_at = 0.0  # type: ignore[attr-defined]
    assert await one(pool.entry, None) == node.name
    await node.down(owner)
    assert await after_a_loss(pool) == first
    node.up()
    assert await one(pool.entry, None) == node.name
    await owner.close()


async def test_only_one_request_at_a_time_tries_a_node_that_is_down(
    pool: Pool, own_database: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await one(pool.entry, None) == own_database["database"]
    tried = 0
    take = pool.entry._kept.take

    async def counted(timeout: float) -> asyncpg.Connection:  # noqa: ASYNC109 - as the method
        nonlocal tried
        tried += 1
        return await take(timeout)

    monkeypatch.setattr(pool.entry._kept, "take", counted)
    pool.entry._retry_at = 0.0  # type: ignore[attr-defined]
    assert set(await asyncio.gather(*(one(pool.entry, n) for n in range(10)))) == {own_database["database"]}
    assert tried == 1


async def test_a_busy_node_is_not_mistaken_for_a_dead_one(pool: Pool, node: Node) -> None:
    node.up()
    async with pool.entry.session(), pool.entry.session():
        with pytest.raises(Refused) as refused:
            await one(pool.entry, None)
    assert refused.value.code is Code.UNAVAILABLE
    assert await one(pool.entry, None) == node.name


async def test_the_pool_counts_and_closes_the_sessions_of_both_nodes(
    pool: Pool, node: Node, own_database: dict[str, Any]
) -> None:
    node.up()
    before, _ = pool.sizes()
    await one(pool.entry, None)
    assert pool.sizes() == (before + 1, pool.sizes()[1])
    await pool.close()
    owner = await asyncpg.connect(**own_database)
    left = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name = 'cuota'"
    assert await owner.fetchval(left, node.name) == 0
    await owner.close()
