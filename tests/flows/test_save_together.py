"""Batched saves look the same to each caller: each outcome is applied, stale or refused by itself."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from cuota.core.order.movement import Movement, MovementKind, MovementRequest
from cuota.core.refusal import Code, Refused
from cuota.db.open_pool import open_pool
from cuota.db.order import outcomes
from cuota.db.pool import GONE, refused_by_the_database
from cuota.db.verify.recalculate import verify
from cuota.flows.context import Context
from cuota.flows.order.capture_order import capture_order
from support.db.same_pool import SamePool
from support.own_service import Own

LOCK = "SELECT 1 FROM orders WHERE merchant_id = $1 AND order_id = $2 FOR UPDATE"
SAVE = "save_orders("


class Watched(SamePool):
    """The service's own pool. It counts the requests to save and the statements that save, and can hold up the first of these."""

    def __init__(self, own: Own) -> None:
        pool = own.context.pool
        assert pool._shared is not None
        super().__init__(pool, batches=True)
        assert self._shared is not None
        self.asked = 0
        self.saves: list[int] = []
        self.go = asyncio.Event()
        self.go.set()
        for sessions in (self, self._shared):
            sessions.fetchrow = self._noting(sessions.fetchrow)  # type: ignore[method-assign]

    async def together(self, kind: Any, merchant_id: UUID, asked: Any) -> Any:
        self.asked += kind is outcomes._SAVES
        return await super().together(kind, merchant_id, asked)

    async def until(self, asked: int) -> None:
        """Wait until there are this many requests to save, one of which is in the delayed statement."""
        async with asyncio.timeout(60):
            while self.asked < asked or not self.saves:  # noqa: ASYNC110 - a statement sets no event
                await asyncio.sleep(0.001)

    def _noting(self, real: Any) -> Any:
        async def noting(sql: str, *values: Any) -> Any:
            if SAVE in sql:
                self.saves.append(len(values[1]))
                await self.go.wait()
            return await real(sql, *values)

        return noting


async def orders(own: Own, count: int) -> list[UUID]:
    return [UUID((await own.merchant.approved("100.00"))["orderId"]) for _ in range(count)]


def capture(own: Own, context: Context, order_id: UUID, cents: int, reference: str = "r") -> Any:
    asked = MovementRequest(MovementKind.CAPTURE, reference, cents)
    return asyncio.ensure_future(capture_order(context, own.merchant.merchant_id, order_id, asked))


async def captured(own: Own) -> dict[UUID, int]:
    assert (await verify(own.context.pool)).disagreements == []
    async with own.owner() as owner:
        return dict(await owner.fetch("SELECT order_id, captured FROM orders"))


async def test_waiting_outcomes_are_saved_in_one_statement_and_each_has_its_own_result(own: Own) -> None:
    ids, pool = await orders(own, 5), Watched(own)
    context = replace(own.context, pool=pool)
    pool.go.clear()
    first = capture(own, context, ids[0], 100)
    await pool.until(asked=1)
    rest = [capture(own, context, order_id, 1000 + n) for n, order_id in enumerate(ids[1:])]
    await pool.until(asked=5)
    pool.go.set()
    await asyncio.gather(first, *rest)
    assert pool.saves == [1, 4]
    assert [task.result().amount for task in rest] == [1000, 1001, 1002, 1003]
    assert await captured(own) == dict(zip(ids, [100, 1000, 1001, 1002, 1003], strict=True))


async def test_a_batch_has_at_most_one_outcome_of_each_order(own: Own) -> None:
    [one, other], pool = await orders(own, 2), Watched(own)
    context = replace(own.context, pool=pool)
    await asyncio.gather(
        *(capture(own, context, one, 100, f"r{n}") for n in range(8)),
        *(capture(own, context, other, 100, f"r{n}") for n in range(8)),
    )
    assert max(pool.saves) == 2
    assert await captured(own) == {one: 800, other: 800}


async def test_an_outcome_that_the_database_refuses_does_not_affect_the_others(own: Own) -> None:
    ids, pool = await orders(own, 4), Watched(own)
    async with own.owner() as owner:
        # An unexpected error that only the database has: one order accepts no more events.
        await owner.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
            "RAISE EXCEPTION 'no' USING ERRCODE = 'check_violation'; END$$"
        )
        await owner.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT ON movements FOR EACH ROW WHEN (NEW.order_id = '{ids[2]}') "
            "EXECUTE FUNCTION refuse()"
        )
    context = replace(own.context, pool=pool)
    done = await asyncio.gather(
        *(capture(own, context, order_id, 500) for order_id in ids), return_exceptions=True
    )
    assert [isinstance(result, Movement) for result in done] == [True, True, False, True]
    assert isinstance(done[2], asyncpg.CheckViolationError)
    assert await captured(own) == {ids[0]: 500, ids[1]: 500, ids[2]: 0, ids[3]: 500}


async def test_a_canceled_request_is_still_saved_and_does_not_affect_the_others(own: Own) -> None:
    ids, pool = await orders(own, 3), Watched(own)
    context = replace(own.context, pool=pool)
    pool.go.clear()
    first = capture(own, context, ids[0], 100)
    await pool.until(asked=1)
    gone, stays = capture(own, context, ids[1], 200), capture(own, context, ids[2], 300)
    await pool.until(asked=3)
    first.cancel()
    gone.cancel()
    pool.go.set()
    await asyncio.gather(first, gone, stays, return_exceptions=True)
    assert stays.result().amount == 300
    assert await captured(own) == dict(zip(ids, [100, 200, 300], strict=True))


async def test_a_locked_row_does_not_delay_other_orders(own: Own) -> None:
    ids, pool = await orders(own, 4), Watched(own)
    context = replace(own.context, pool=pool)
    async with own.owner() as owner, owner.transaction():
        await owner.execute(LOCK, own.merchant.merchant_id, ids[1])
        tasks = [capture(own, context, order_id, 500) for order_id in ids]
        async with asyncio.timeout(60):
            done = await asyncio.gather(tasks[0], *tasks[2:])
        assert not tasks[1].done()
    assert [movement.amount for movement in done] == [500] * 3
    assert (await tasks[1]).amount == 500
    assert await captured(own) == dict.fromkeys(ids, 500)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_if_the_session_is_lost_during_a_batch_each_outcome_is_applied_exactly_once(
    own: Own, when: str
) -> None:
    ids, pool = await orders(own, 6), Watched(own)
    assert pool._shared is not None
    real, cut = pool._shared._pool, []

    async def fetchrow(sql: str, *values: Any) -> Any:
        async with real.acquire() as connection:
            if SAVE not in sql or cut:
                return await connection.fetchrow(sql, *values)
            cut.append(len(values[1]))
            row = await connection.fetchrow(sql, *values) if when == "after" else None
            async with own.owner() as owner:
                await owner.execute(
                    "SELECT pg_terminate_backend($1::integer, 5000)", connection.get_server_pid()
                )
            return row if await connection.fetchrow("SELECT 1") == "lost by now" else None

    pool._shared.fetchrow = fetchrow  # type: ignore[method-assign]
    context = replace(own.context, pool=pool)
    done = await asyncio.gather(*(capture(own, context, order_id, 500) for order_id in ids))
    assert cut
    assert cut[0] > 1
    assert [movement.amount for movement in done] == [500] * 6
    assert await captured(own) == dict.fromkeys(ids, 500)


async def test_a_value_that_cannot_be_stored_fails_without_affecting_the_others(own: Own) -> None:
    ids, pool = await orders(own, 3), own.context.pool
    context = replace(own.context, pool=pool)
    bad = MovementRequest(MovementKind.CAPTURE, "half a surrogate: \ud800", 100)
    results = await asyncio.gather(
        capture(own, context, ids[0], 100),
        capture_order(context, own.merchant.merchant_id, ids[1], bad),
        capture(own, context, ids[2], 100),
        return_exceptions=True,
    )
    assert isinstance(results[1], asyncpg.DataError)
    assert await captured(own) == {ids[0]: 100, ids[1]: 0, ids[2]: 100}


async def test_waiting_new_orders_are_created_in_one_statement(own: Own) -> None:
    order_ids = await asyncio.gather(*(own.merchant.create("100.00") for _ in range(12)))
    assert len({created["orderId"] for created in order_ids}) == 12
    records = await asyncio.gather(*(own.merchant.read(created) for created in order_ids))
    assert [record["orderId"] for record in records] == [created["orderId"] for created in order_ids]


async def test_no_session_at_all_is_told_as_nothing_applied(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuota.db.pool.WAIT_SECONDS", 0.5)
    [order_id] = await orders(own, 1)
    pool = await open_pool(own.where, 1)
    context = replace(own.context, pool=pool)
    async with pool.session():
        with pytest.raises(Refused) as refused:
            await capture_order(
                context, own.merchant.merchant_id, order_id, MovementRequest(MovementKind.CAPTURE, "r", 100)
            )
    assert refused.value.code is Code.UNAVAILABLE
    await pool.close()
    assert await captured(own) == {order_id: 0}


def test_the_error_of_a_lost_session_is_never_treated_as_a_refusal() -> None:
    for lost in GONE:
        made = lost.__new__(lost)
        assert not refused_by_the_database(made), lost
    assert refused_by_the_database(asyncpg.CheckViolationError("no"))
    assert refused_by_the_database(asyncpg.LockNotAvailableError("busy"))
