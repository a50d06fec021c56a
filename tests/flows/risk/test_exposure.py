"""Concurrent checkouts of one consumer never exceed the consumer's limit, even at different merchants and in different processes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from cuota import config
from cuota.core.order.order import Order, Status
from cuota.db.risk import history
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.submit_checkout import OTHER_PURCHASE
from cuota.flows.checkout.take_step import Checkout, Problem
from cuota.flows.context import Context
from cuota.rails.card.protocol import CardAnswer, ChargeRequest
from cuota.rails.card.rails import CardRails
from cuota.run import runtime
from support.db.locks import holder
from support.db.same_pool import SamePool
from support.flows.buttons import opened, press
from support.own_service import Own, opened_own
from support.phones import phone_number


@pytest.fixture
async def own(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Own]:
    """A service with the policy of the release."""
    async with opened_own(replace(settings, policy=None), own_database) as opened_under_it:
        yield opened_under_it


class Slow(CardRails):
    """A slow card network of the sandbox, which answers only when the test allows it."""

    def __init__(self, rail: CardRails) -> None:
        super().__init__(rail.active)
        self.go = asyncio.Event()

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        await self.go.wait()
        return await super().charge(asked)


def with_slow_rail(context: Context) -> tuple[Context, Slow]:
    rail = Slow(context.rails.card)
    return replace(context, rails=replace(context.rails, card=rail)), rail


async def decisions(own: Own) -> list[Any]:
    async with own.owner() as owner:
        return list(await owner.fetch("SELECT * FROM decisions ORDER BY decided_at"))


async def patient(context: Context, seen: Checkout) -> Order:
    """A consumer who presses the button again when the page asks for that."""
    while True:
        try:
            return await press(context, seen)
        except Problem as problem:
            if problem.notice != OTHER_PURCHASE:
                raise


@pytest.mark.parametrize(("count", "fit"), [(2, 1), (16, 4), (64, 4)])
async def test_of_many_checkouts_at_once_only_those_within_the_limit_begin_a_charge(
    own: Own, count: int, fit: int
) -> None:
    phone = phone_number()
    limit = own.context.policy.exposure.new
    waiting = await opened(own, phone, count, f"{limit // fit / 100:.2f}")
    # Simulate two processes, which share only the locks in the database.
    async with runtime.opened(own.service.settings, own.where, pool_size=16, now=own.context.now) as other:
        contexts = [with_slow_rail(own.context), with_slow_rail(other)]
        presses = [
            asyncio.create_task(patient(contexts[index // 2 % 2][0], seen))
            for index, seen in enumerate(waiting)
        ]
        async with asyncio.timeout(120):
            while len(await decisions(own)) < count:  # noqa: ASYNC110 - another process's commit sets no event here
                await asyncio.sleep(0.05)
        for _, rail in contexts:
            rail.go.set()
        ended = await asyncio.gather(*presses)
    expected = [Status.APPROVED] * fit + [Status.DECLINED] * (count - fit)
    assert sorted(order.status for order in ended) == expected
    made = await decisions(own)
    assert {row["credit_limit"] for row in made} == {limit}
    assert sum(row["approved"] for row in made) == fit
    assert (await verify(own.context.pool)).disagreements == []
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT count(*) FROM consumer_reservations") == 0


async def test_of_two_concurrent_checkouts_the_second_decision_counts_the_first_order_s_amount(
    own: Own,
) -> None:
    half = own.context.policy.exposure.new // 2
    one, two = await opened(own, phone_number(), 2, f"{half / 100:.2f}")
    context, rail = with_slow_rail(own.context)
    presses = [asyncio.create_task(press(context, seen)) for seen in (one, two)]
    async with asyncio.timeout(60):
        while len(await decisions(own)) < 2:  # noqa: ASYNC110 - a commit sets no event here
            await asyncio.sleep(0.02)
    rail.go.set()
    assert {order.status for order in await asyncio.gather(*presses)} == {Status.APPROVED}
    outstanding = [json.loads(row["inputs"])["history"]["outstanding"] for row in await decisions(own)]
    assert sorted(outstanding) == [0, half]


async def test_twenty_presses_of_one_button_cause_one_charge(own: Own) -> None:
    [seen] = await opened(own, phone_number(), 1, "100.00")
    ended = await asyncio.gather(*(press(own.context, seen) for _ in range(20)), return_exceptions=True)
    assert sum(isinstance(each, Order) for each in ended) >= 1
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT count(*) FROM charges") == 1
        assert await owner.fetchval("SELECT count(*) FROM consumer_reservations") == 0


async def test_an_order_whose_row_was_rewritten_without_a_new_version_is_saved(own: Own) -> None:
    """The update replaces the row, but keeps the version. The version check must follow the new row."""
    [seen] = await opened(own, phone_number(), 1, "100.00")

    class Aside(SamePool):
        waited = False

        async def fetchrow(self, sql: str, *values: object) -> Any:
            if "save_orders(" not in sql or self.waited:
                return await super().fetchrow(sql, *values)
            self.waited = True
            async with holder(own.where) as other:
                await other.run("UPDATE orders SET due_at = due_at + interval '1 second'")
                saving = asyncio.create_task(super().fetchrow(sql, *values))
                await other.until_waits(saving)
            row = await saving
            assert row is not None
            return row

    pool = Aside(own.context.pool)
    order = await press(replace(own.context, pool=pool), seen)
    assert (order.status, pool.waited) == (Status.APPROVED, True)


async def test_if_a_consumer_has_no_row_to_lock_one_is_created(own: Own) -> None:
    consumer_id = own.context.vault.consumer_id(phone_number())
    async with own.context.pool.session() as connection, connection.transaction():
        await history.lock(connection, consumer_id)
        async with own.owner() as owner:
            await owner.execute("SET lock_timeout = '100ms'")
            held = await asyncio.gather(
                owner.execute("INSERT INTO consumer_exposure VALUES ($1, 5)", consumer_id),
                return_exceptions=True,
            )
    assert "lock timeout" in str(held[0])
