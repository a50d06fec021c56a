"""On a Citus cluster (CUOTA_TEST_CITUS): a consumer's limit is reserved on one node, and the order is saved on another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID, uuid4

import asyncpg
import pytest

from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.risk.decision import Decision, StoredDecision
from cuota.core.risk.signal import Signal, SignalKind
from cuota.db.order import orders, outcomes
from cuota.db.pool import ON_CITUS, SESSION
from cuota.db.risk import history, reservations
from cuota.flows.context import new_id
from support.db.cluster_session import WORKER_OF, Cluster
from support.db.made_orders import NOW, created


@pytest.fixture
async def cluster(citus: str) -> AsyncIterator[Cluster]:
    settings = {**SESSION, **ON_CITUS, "statement_timeout": "60s"}
    session = await asyncpg.connect(citus, server_settings=settings)
    made = Cluster(session, citus)
    session.add_log_listener(lambda _, message: made.sent.append(message.message))
    await session.execute("SET client_min_messages = notice; SET citus.log_remote_commands = on")
    yield made
    await session.close()


WHERE_CONSUMER = """SELECT nodeport FROM citus_shards WHERE table_name = 'consumer_exposure'::regclass
    AND shardid = get_shard_id_for_distribution_column('consumer_exposure', $1::uuid)"""


def decided(order: Order, consumer_id: UUID) -> Outcome:
    """Begin the charge of the first installment."""
    charging = replace(order, charging=new_id(), charging_since=NOW)
    made = Decision(True, ("within_limit",), "test", {}, 600, 200_000)
    kept = (Signal(SignalKind.PHONE, b"phone"),)
    return Outcome(order=charging, decision=StoredDecision(new_id(), consumer_id, made, kept), at=NOW)


async def at_two_nodes(session: asyncpg.Connection) -> tuple[UUID, UUID]:
    """Return a merchant, and a consumer whose rows are on another worker."""
    merchant_id = uuid4()
    here = await session.fetchval(WORKER_OF, merchant_id)
    while await session.fetchval(WHERE_CONSUMER, consumer_id := uuid4()) == here:
        pass
    return merchant_id, consumer_id


async def test_an_approval_is_one_command_to_the_consumers_node_and_one_to_the_merchants(
    cluster: Cluster,
) -> None:
    session = cluster.session
    merchant_id, consumer_id = await at_two_nodes(session)
    new = created(merchant_id)
    assert await outcomes.create(session, new)
    ids = consumer_id, merchant_id, new.order.order_id
    # By default, PostgreSQL may use a generic plan after five calls, so make more calls than that.
    for nth in range(8):
        reserved, sent = await cluster.commands(
            reservations.reserve(session, *ids, 10_000, None if nth % 2 else 1)
        )
        assert (reserved.earlier, sent) == ({}, ["SELECT public.reserve_exposure"])
        if nth:
            done, sent = await cluster.commands(
                reservations.finish(session, consumer_id, reserved.ticket, None)
            )
            assert (done, sent) == (True, ["SELECT public.finish_reservation"])
    done, sent = await cluster.commands(outcomes.save(session, decided(new.order, consumer_id)))
    assert (done, sent) == (True, ["SELECT public.save_orders"])


async def test_two_consumers_are_approved_at_the_same_time_but_two_orders_of_one_consumer_one_after_the_other(
    cluster: Cluster,
) -> None:
    """An open transaction locks one consumer's row. Approvals of other consumers do not wait."""
    session, (merchant_id, consumer_id) = cluster.session, await at_two_nodes(cluster.session)
    await reservations.reserve(session, consumer_id, merchant_id, new_id(), 100, None)
    other = await asyncpg.connect(
        cluster.url, server_settings={**SESSION, **ON_CITUS, "statement_timeout": "60s"}
    )
    try:
        # The first call of a new session is slow.
        await reservations.reserve(other, uuid4(), merchant_id, new_id(), 100, None)
        await session.execute("SET idle_in_transaction_session_timeout = '60s'")
        async with session.transaction():
            await history.lock(session, consumer_id)
            for _ in range(4):
                found = await reservations.reserve(other, uuid4(), merchant_id, new_id(), 100, None)
                assert found.ticket == 1
            # Citus does not send lock_timeout to its workers, and this session is that of the owner.
            await other.execute("SET statement_timeout = '1s'")
            with pytest.raises(asyncpg.QueryCanceledError):
                await reservations.reserve(other, consumer_id, merchant_id, new_id(), 100, None)
        await other.execute("SET statement_timeout = '60s'")
        found = await reservations.reserve(other, consumer_id, merchant_id, new_id(), 100, None)
        assert list(found.earlier.values()) == [100]
    finally:
        await other.close()


async def test_an_expired_reservation_is_settled_and_a_late_save_writes_nothing(
    cluster: Cluster,
) -> None:
    session, (merchant_id, consumer_id) = cluster.session, await at_two_nodes(cluster.session)
    new = created(merchant_id)
    assert await outcomes.create(session, new)
    held = await reservations.reserve(session, consumer_id, merchant_id, new.order.order_id, 10_000, None)
    await session.execute(
        "UPDATE consumer_reservations SET expires_at = '2026-01-01' WHERE consumer_id = $1", consumer_id
    )
    [seen] = [each for each in await reservations.expired(session, 100) if each.consumer_id == consumer_id]
    assert (seen.ticket, seen.order_id) == (held.ticket, new.order.order_id)
    _, sent = await cluster.commands(orders.fence(session, merchant_id, new.order.order_id))
    assert len(sent) == 1
    assert await reservations.finish(session, consumer_id, seen.ticket, seen.expires_at)
    assert not await outcomes.save(session, decided(new.order, consumer_id))
    assert await reservations.count(session, consumer_id) == 0


async def test_each_of_sixteen_concurrent_reservations_counts_all_earlier_ones(cluster: Cluster) -> None:
    consumer_id = uuid4()

    async def one() -> reservations.Reserved:
        session = await asyncpg.connect(
            cluster.url, server_settings={**SESSION, **ON_CITUS, "lock_timeout": "60s"}
        )
        try:
            return await reservations.reserve(session, consumer_id, uuid4(), new_id(), 100, None)
        finally:
            await session.close()

    found = sorted(await asyncio.gather(*(one() for _ in range(16))), key=lambda each: each.ticket)
    assert [(each.ticket, len(each.earlier)) for each in found] == [(n, n - 1) for n in range(1, 17)]
