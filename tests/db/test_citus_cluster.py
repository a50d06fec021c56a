"""On a Citus cluster (CUOTA_TEST_CITUS): a merchant's call is one command to the one node that has the merchant."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from cuota.core.installment import Installment
from cuota.core.order import posting
from cuota.core.order.event import Event
from cuota.core.order.movement import Movement, MovementKind
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.core.risk.decision import Decision, StoredDecision
from cuota.core.risk.signal import Signal, SignalKind
from cuota.db.order import orders, outcomes
from cuota.db.order.outcomes import NewOrder
from cuota.db.pool import ON_CITUS, SESSION
from cuota.db.risk import history, reservations
from cuota.flows.context import new_id, new_token

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
WORKER_OF = """SELECT nodeport FROM citus_shards WHERE table_name = 'orders'::regclass
    AND shardid = get_shard_id_for_distribution_column('orders', $1::uuid)"""


@dataclass
class Cluster:
    """A session at the coordinator with the service's settings, and the commands that it sent to workers."""

    session: asyncpg.Connection
    url: str
    sent: list[str] = field(default_factory=list)

    async def commands(self, asked: Awaitable[Any]) -> tuple[Any, list[str]]:
        """What was answered, and the first words of each command that was sent for it."""
        self.sent.clear()
        answer = await asked
        issued = [re.sub(r"^issuing ", "", text) for text in self.sent if text.startswith("issuing ")]
        return answer, [re.split(r"[(']", " ".join(text.split()))[0] for text in issued]


@pytest.fixture
async def cluster(citus: str) -> AsyncIterator[Cluster]:
    settings = {**SESSION, **ON_CITUS, "statement_timeout": "60s"}
    session = await asyncpg.connect(citus, server_settings=settings)
    made = Cluster(session, citus)
    session.add_log_listener(lambda _, message: made.sent.append(message.message))
    await session.execute("SET client_min_messages = notice; SET citus.log_remote_commands = on")
    yield made
    await session.close()


def created(merchant_id: UUID) -> NewOrder:
    order = Order(
        merchant_id=merchant_id,
        order_id=new_id(),
        version=1,
        status=Status.CREATED,
        currency="USD",
        amount=10_000,
        fee=0,
        auto_capture=False,
        created_at=NOW,
        expires_at=NOW + timedelta(hours=1),
        events=1,
    )
    return NewOrder(order, new_token(), "reference", "{}", (Event("order.created", order.amount),))


def approved(order: Order) -> Outcome:
    day = date(2026, 3, 1)
    plan = tuple(Installment(n, day + timedelta(days=14 * n), 2500, 0) for n in range(1, 5))
    new = replace(order, status=Status.APPROVED, authorization_expires_at=NOW + timedelta(days=7))
    return Outcome(order=new, installments=plan, events=(Event("order.approved", order.amount),), at=NOW)


def read_again(outcome: Outcome) -> Order:
    """The order as the next request reads it."""
    new = outcome.order
    counts = {"transfers": new.transfers + len(outcome.transfers), "events": new.events + len(outcome.events)}
    return replace(new, version=new.version + 1, **counts)


def moved(order: Order, kind: MovementKind, reference: str, cents: int) -> Outcome:
    total = {"capture": "captured", "void": "voided", "refund": "refunded"}[kind]
    new = replace(order, **{total: getattr(order, total) + cents})
    owed = new.amount - new.voided - new.refunded
    plan = tuple(
        Installment(n, date(2026, 3, 1) + timedelta(days=14 * n), owed // 4 + (owed % 4 if n == 4 else 0), 0)
        for n in range(1, 5)
    )
    movement_id = new_id()
    return Outcome(
        order=new,
        movement=Movement(kind, movement_id, reference, cents, NOW),
        installments=() if kind is MovementKind.CAPTURE else plan,
        transfers=tuple(posting.capture(movement_id, cents)),
        events=(Event(f"{kind}.completed", cents, reference),),
        at=NOW,
    )


READS = {
    name: getattr(orders, name)
    for name in (
        "FOR_CAPTURE", "_FOR_CAPTURES", "FOR_MOVEMENT", "_FOR_MOVEMENTS", "WITH_PLAN", "RECORD_BY_ID", "RECORD_BY_TOKEN",
        "_RECORDS_BY_ID", "_PAYER", "FIND_BY_CHECKOUT_TOKEN", "LOCK", "DUE",
    )
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
async def test_a_read_of_a_merchants_call_is_planned_for_one_shard(cluster: Cluster, name: str) -> None:
    session, merchant_id = cluster.session, uuid4()
    await session.execute(f"PREPARE asked AS {READS[name]}")
    [types] = await session.fetchrow(
        "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'asked'"
    )
    samples = {
        "uuid": f"'{new_id()}'",
        "uuid[]": f"'{{{new_id()}}}'",
        "text": "'capture'",
        "text[]": "'{capture}'",
    }
    rest = [samples.get(kind, "'2026-03-01'" if kind.startswith("timestamp") else "1") for kind in types[1:]]
    values = ", ".join([f"'{merchant_id}'", *rest])
    plan = await session.fetch(f"EXPLAIN EXECUTE asked({values})")
    await session.execute("DEALLOCATE asked")
    assert "Task Count: 1" in [row[0].strip() for row in plan]


async def test_every_save_of_one_order_is_one_command_and_no_transaction_spans_nodes(
    cluster: Cluster,
) -> None:
    session, new = cluster.session, created(uuid4())
    done, sent = await cluster.commands(outcomes.create(session, new))
    assert (done, sent) == (True, ["SELECT public.create_orders"])
    outcome = approved(new.order)
    for kind, cents in ((None, 0), ("capture", 5000), ("capture", 1000), ("void", 1001), ("refund", 999)):
        if kind is not None:
            outcome = moved(read_again(outcome), MovementKind(kind), f"{kind} {cents}", cents)
        done, sent = await cluster.commands(outcomes.save(session, outcome))
        assert (done, sent) == (True, ["SELECT public.save_orders"]), kind
    # More often than PostgreSQL makes custom plans by itself.
    for n in range(8):
        outcome = moved(read_again(outcome), MovementKind.CAPTURE, f"again {n}", 10)
        done, sent = await cluster.commands(outcomes.save(session, outcome))
        assert (done, sent) == (True, ["SELECT public.save_orders"])


async def test_a_batch_of_one_merchant_is_one_command_too(cluster: Cluster) -> None:
    session, merchant_id = cluster.session, uuid4()
    new = [created(merchant_id) for _ in range(16)]
    done, sent = await cluster.commands(outcomes._create_together(session, new))
    assert (done, sent) == ([True] * 16, ["SELECT public.create_orders"])
    batch = [approved(one.order) for one in new]
    done, sent = await cluster.commands(outcomes._save_together(session, batch))
    assert (done, sent) == ([True] * 16, ["SELECT public.save_orders"])
    captures = [moved(read_again(one), MovementKind.CAPTURE, "r", 100) for one in batch]
    # One of them is stale.
    captures[3] = moved(batch[3].order, MovementKind.CAPTURE, "r", 100)
    done, sent = await cluster.commands(outcomes._save_together(session, captures))
    assert (done, sent) == ([n != 3 for n in range(16)], ["SELECT public.save_orders"])
    assert await session.fetchval("SELECT count(*) FROM movements WHERE merchant_id = $1", merchant_id) == 15


async def test_the_node_that_runs_a_save_asks_no_other_node(cluster: Cluster) -> None:
    """Called at the worker itself, which then logs what it sends: nothing."""
    merchant_id = uuid4()
    new = created(merchant_id)
    port = await cluster.session.fetchval(WORKER_OF, merchant_id)
    url = re.sub(r":\d+/", f":{port}/", cluster.url)
    session = await asyncpg.connect(url, server_settings={**SESSION, **ON_CITUS, "statement_timeout": "60s"})
    worker = Cluster(session, url)
    session.add_log_listener(lambda _, message: worker.sent.append(message.message))
    await session.execute("SET client_min_messages = notice; SET citus.log_remote_commands = on")
    try:
        assert await worker.commands(outcomes.create(session, new)) == (True, [])
        outcome = approved(new.order)
        assert await worker.commands(outcomes.save(session, outcome)) == (True, [])
        for kind in (MovementKind.CAPTURE, MovementKind.REFUND, MovementKind.VOID):
            outcome = moved(read_again(outcome), kind, "r", 100)
            assert await worker.commands(outcomes.save(session, outcome)) == (True, [])
    finally:
        await session.close()


async def test_a_stale_save_writes_nothing_and_the_shard_refuses_what_the_law_forbids(
    cluster: Cluster,
) -> None:
    session, new = cluster.session, created(uuid4())
    assert await outcomes.create(session, new)
    outcome = approved(new.order)
    assert await outcomes.save(session, outcome)
    assert not await outcomes.save(session, outcome)
    order = read_again(outcome)
    with pytest.raises(asyncpg.CheckViolationError, match="no_over_capture"):
        await outcomes.save(session, moved(order, MovementKind.CAPTURE, "too much", 10_001))
    voided = moved(order, MovementKind.VOID, "v", 1000)
    with pytest.raises(asyncpg.CheckViolationError, match="plan of order"):
        await outcomes.save(session, replace(voided, installments=()))
    assert await outcomes.save(session, moved(order, MovementKind.CAPTURE, "r", 100))
    again = moved(replace(order, version=order.version + 1), MovementKind.CAPTURE, "r", 100)
    assert not await outcomes.save(session, again)
    [row] = await session.fetch(
        "SELECT version, captured, voided FROM orders WHERE merchant_id = $1 AND order_id = $2",
        order.merchant_id,
        order.order_id,
    )
    assert tuple(row) == (3, 100, 0)


WHERE_CONSUMER = """SELECT nodeport FROM citus_shards WHERE table_name = 'consumer_exposure'::regclass
    AND shardid = get_shard_id_for_distribution_column('consumer_exposure', $1::uuid)"""


def decided(order: Order, consumer_id: UUID) -> Outcome:
    """The charge of the first installment begins."""
    charging = replace(order, charging=new_id(), charging_since=NOW)
    made = Decision(True, ("within_limit",), "test", {}, 600, 200_000)
    kept = (Signal(SignalKind.PHONE, b"phone"),)
    return Outcome(order=charging, decision=StoredDecision(new_id(), consumer_id, made, kept), at=NOW)


async def at_two_nodes(session: asyncpg.Connection) -> tuple[UUID, UUID]:
    """A merchant, and a consumer on another worker."""
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
    # More often than PostgreSQL makes custom plans by itself.
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


async def test_two_consumers_are_approved_at_the_same_time_and_one_consumer_takes_turns(
    cluster: Cluster,
) -> None:
    """One consumer's row is locked by an open transaction: others do not wait for it."""
    session, (merchant_id, consumer_id) = cluster.session, await at_two_nodes(cluster.session)
    await reservations.reserve(session, consumer_id, merchant_id, new_id(), 100, None)
    other = await asyncpg.connect(
        cluster.url, server_settings={**SESSION, **ON_CITUS, "statement_timeout": "60s"}
    )
    try:
        # A new session is slow at its first call.
        await reservations.reserve(other, uuid4(), merchant_id, new_id(), 100, None)
        await session.execute("SET idle_in_transaction_session_timeout = '60s'")
        async with session.transaction():
            await history.lock(session, consumer_id)
            for _ in range(4):
                found = await reservations.reserve(other, uuid4(), merchant_id, new_id(), 100, None)
                assert found.ticket == 1
            # Citus does not send lock_timeout to its workers.
            await other.execute("SET statement_timeout = '1s'")
            with pytest.raises(asyncpg.QueryCanceledError):
                await reservations.reserve(other, consumer_id, merchant_id, new_id(), 100, None)
        await other.execute("SET statement_timeout = '60s'")
        found = await reservations.reserve(other, consumer_id, merchant_id, new_id(), 100, None)
        assert list(found.earlier.values()) == [100]
    finally:
        await other.close()


async def test_a_reservation_that_expired_is_settled_and_the_late_save_writes_nothing(
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


async def test_of_sixteen_reservations_at_once_each_counts_all_before_it(cluster: Cluster) -> None:
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
