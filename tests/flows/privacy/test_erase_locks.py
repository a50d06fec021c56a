"""Erasures and the retention job never deadlock with each other, and an erasure survives a deadlock with something else."""

from __future__ import annotations

import asyncio
from uuid import UUID

from cuota.db.desk import terms
from cuota.db.privacy.erasure import blank_orders
from cuota.flows.context import utc_now
from cuota.flows.privacy.erase_consumer import erase_consumer
from support.db.locks import deadlocked, holder
from support.flows.people import PHONE, bought, paid_off, words_left
from support.own_service import Own


async def test_no_order_is_locked_while_another_transaction_removes_consumers_of_the_merchant(
    own: Own,
) -> None:
    merchant_id = own.merchant.merchant_id
    order_id = UUID((await own.merchant.create())["orderId"])

    async def blank() -> tuple[int, int]:
        async with own.context.pool.session() as session, session.transaction():
            return await blank_orders(session, merchant_id, [order_id], utc_now())

    async with own.context.pool.session() as session, session.transaction():
        await terms.lock(session, merchant_id)
    async with holder(own.where) as other:
        await other.run("SELECT 1 FROM order_terms_read WHERE merchant_id = $1 FOR UPDATE", merchant_id)
        blanking = asyncio.ensure_future(blank())
        await other.until_waits(blanking)
        await other.run("SELECT 1 FROM order_details WHERE merchant_id = $1 FOR UPDATE NOWAIT", merchant_id)
    assert await blanking == (1, 0)


async def test_an_erasure_that_lost_a_deadlock_is_done_all_the_same(own: Own) -> None:
    await bought(own)
    await paid_off(own)
    erased = await deadlocked(
        own.where,
        lambda: erase_consumer(own.context, PHONE, dry_run=False),
        "SELECT FROM consumer_exposure FOR UPDATE",
        "SELECT FROM plans FOR UPDATE",
        "SELECT FROM consumers FOR UPDATE",
    )
    assert erased.done
    assert await words_left(own) == []
