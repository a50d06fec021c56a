"""Database sessions that are terminated while an outcome is saved, and a card rail that loses its answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import asyncpg

from cuota.flows.context import Context
from cuota.rails.card.protocol import CardAnswer, ChargeRequest, RefundRequest
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.db.locks import holder
from support.db.same_pool import SamePool
from support.own_service import Own

Hook = Callable[[], Awaitable[None]]


class CutPool(SamePool):
    """The service's pool. Its database session is terminated at the first save: before, during or after the save.

    `contend` runs before each of the first two saves, so that these are stale and the third one runs under the lock. `call` is
    the function in the database that saves.
    """

    def __init__(self, own: Own, when: str, contend: Hook | None = None, call: str = "save_orders(") -> None:
        super().__init__(own.context.pool)
        self._call = call
        self._own, self._when, self._contend = own, when, contend
        self.contended = self.cut = 0

    def saves(self, sql: str) -> bool:
        """True if a statement is the call that saves."""
        return self._call in sql

    async def fetchrow(self, sql: str, *values: object) -> Any:
        if not self.saves(sql):
            return await super().fetchrow(sql, *values)
        if self._contend is not None:
            if self.contended < 2:
                self.contended += 1
                await self._contend()
            return await super().fetchrow(sql, *values)
        async with super().session() as connection:
            return await self.fetchrow_cut(connection, sql, *values)

    async def fetchrow_cut(self, connection: Any, sql: str, *values: object) -> Any:
        if self.cut:
            return await connection.fetchrow(sql, *values)
        self.cut += 1
        pid = connection.get_server_pid()
        if self._when == "before":
            await self._terminate(pid)
        if self._when == "while":
            return await self._cut_while(connection, pid, sql, *values)
        row = await connection.fetchrow(sql, *values)
        await self._terminate(pid)
        await connection.fetchrow("SELECT 1")
        return row

    async def _cut_while(self, connection: Any, pid: int, sql: str, *values: object) -> Any:
        async with holder(self._own.where) as other:
            await other.run(
                "SELECT 1 FROM orders WHERE merchant_id = $1 FOR UPDATE", self._own.merchant.merchant_id
            )
            running = asyncio.create_task(connection.fetchrow(sql, *values))
            await other.until_waits(running)
            await other.run("SELECT pg_terminate_backend($1::integer)", pid)
        return await running

    async def _terminate(self, pid: int) -> None:
        async with self._own.owner() as owner:
            assert await owner.fetchval("SELECT pg_terminate_backend($1::integer, 5000)", pid)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Any]:
        async with super().session() as connection:
            yield _CutConnection(self, connection) if self.contended == 2 else connection


class _CutConnection:
    """One connection of the pool, inside a transaction, that is lost at its save."""

    def __init__(self, pool: CutPool, connection: asyncpg.Connection) -> None:
        self._pool, self._connection = pool, connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def fetchrow(self, sql: str, *values: object) -> Any:
        if self._pool.saves(sql):
            return await self._pool.fetchrow_cut(self._connection, sql, *values)
        return await self._connection.fetchrow(sql, *values)


class FlakyRail(CardRails):
    """The sandbox's card network on a bad line. It loses the next `lost` calls, before or after the network acts on
    them."""

    def __init__(
        self, rail: CardRails, *, lost: int = 0, arrives: bool = True, accident: UUID | None = None
    ) -> None:
        super().__init__(rail.active)
        self.rail, self.lost, self.arrives, self.accident = rail, lost, arrives, accident
        self.asked: list[UUID] = []

    async def _through(self, key: UUID, act: Awaitable[CardAnswer]) -> CardAnswer:
        self.asked.append(key)
        if key == self.accident:
            act.close()  # type: ignore[attr-defined]
            raise ValueError("a rail's own bug")
        if self.lost and not self.arrives:
            self.lost -= 1
            act.close()  # type: ignore[attr-defined]
            raise RailUnavailable("the line is down")
        answer = await act
        if self.lost:
            self.lost -= 1
            raise RailUnavailable("the answer was lost")
        return answer

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        return await self._through(asked.key, self.rail.charge(asked))

    async def refund(self, asked: RefundRequest) -> CardAnswer:
        return await self._through(asked.key, self.rail.refund(asked))


def with_rail(context: Context, rail: FlakyRail) -> Context:
    return replace(context, rails=replace(context.rails, card=rail))
