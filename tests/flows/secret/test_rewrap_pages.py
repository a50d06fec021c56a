"""`cuota keys rewrap` encrypts large files in pages that fit a statement, and continues after a lost connection."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from cuota import config
from cuota.db.sealed import PAGE_BYTES, SEALED
from cuota.db.vault import Vault
from cuota.flows.secret.rewrap_secrets import Rewrapped, rewrap
from cuota.run import runtime

MIB = 2**20
FILES = [place for place in SEALED if place.table == "public.dispute_files"]


class Watched:
    """A database session that counts the bytes of each statement. `loses` loses the connection once before each statement."""

    def __init__(self, session: Any, *, loses: bool) -> None:
        self._session, self._loses = session, loses
        self.most, self.lost = 0, Counter[str]()

    async def fetchrow(self, sql: str, *values: object) -> Any:
        self._lose(sql)
        return await self._session.fetchrow(sql, *values)

    async def fetch(self, sql: str, *values: object) -> Any:
        self._lose(sql)
        rows = await self._session.fetch(sql, *values)
        self.most = max(self.most, size_of(list(values)), size_of([list(row) for row in rows]))
        return rows

    def _lose(self, sql: str) -> None:
        if self._loses and not self.lost[sql]:
            self.lost[sql] += 1
            raise ConnectionResetError("the connection was lost")


def size_of(value: Any) -> int:
    """Return the bytes of all texts in nested lists."""
    if isinstance(value, bytes):
        return len(value)
    return sum(map(size_of, value)) if isinstance(value, list) else 0


async def store(where: dict[str, Any], vault: Vault, sizes: list[int]) -> None:
    """Store files of these sizes. They belong to no dispute, because only their encrypted columns matter here."""
    owner = await asyncpg.connect(**where)
    try:
        await owner.execute("SET session_replication_role = replica")
        for size in sizes:
            evidence = uuid4()
            await owner.execute(
                """INSERT INTO dispute_files
                    (merchant_id, dispute_id, evidence_id, number, name, media_type, size, content, created_at)
                VALUES ($1, $2, $3, 1, $4, 'image/png', 1, $5, now())""",
                uuid4(), uuid4(), evidence, vault.encrypt("a.png", f"dispute-file-name:{evidence}:1"),
                vault.encrypt("x" * size, f"dispute-file:{evidence}:1"),
            )  # fmt: skip
    finally:
        await owner.close()


async def rewrapped(
    settings: config.Settings, where: dict[str, Any], sizes: list[int], *, loses: bool = False
) -> tuple[Rewrapped, Watched]:
    """Store files of these sizes, and encrypt all of them again with a new key."""
    both = replace(settings, secret_key=os.urandom(32), old_secret_keys=(settings.secret_key,))
    async with runtime.opened(both, where, pool_size=2, decides=False) as context:
        await store(where, Vault(settings.secret_key), sizes)
        watched = Watched(context.pool, loses=loses)
        places = [(watched, place) for place in FILES]
        return await rewrap(context.pool, context.vault, places, lambda *_: None), watched


async def test_no_statement_of_a_rewrap_reads_or_sends_more_than_one_page_of_bytes(
    settings: config.Settings, own_database: dict[str, Any]
) -> None:
    found, watched = await rewrapped(settings, own_database, [5 * MIB, 2 * MIB, 5 * MIB, 5 * MIB, 2 * MIB])
    assert (found.done, found.rewrapped) == (True, 10)
    assert 5 * MIB < watched.most <= PAGE_BYTES + 1000


async def test_a_text_that_is_larger_than_a_page_is_rewrapped_alone(
    settings: config.Settings, own_database: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuota.db.sealed.PAGE_BYTES", 1000)
    found, watched = await rewrapped(settings, own_database, [2000, 3000, 100, 2000, 100])
    assert (found.done, found.rewrapped) == (True, 10)
    assert watched.most < 3500


async def test_a_rewrap_continues_after_each_lost_connection(
    settings: config.Settings, own_database: dict[str, Any]
) -> None:
    found, watched = await rewrapped(settings, own_database, [1000, 1000], loses=True)
    assert (found.done, found.rewrapped) == (True, 4)
    assert {sql.split()[0] for sql in watched.lost} == {"SELECT", "UPDATE"}
