"""On a Citus cluster (CUOTA_TEST_CITUS): a merchant's call is one command to the one node that has the merchant."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date, timedelta
from uuid import uuid4

import asyncpg
import pytest

from cuota.core.installment import Installment
from cuota.core.order import posting
from cuota.core.order.event import Event
from cuota.core.order.movement import Movement, MovementKind
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.db.order import orders, outcomes
from cuota.db.pool import ON_CITUS, SESSION
from cuota.flows.context import new_id
from support.db.cluster_session import NOW, WORKER_OF, Cluster, created


@pytest.fixture
async def cluster(citus: str) -> AsyncIterator[Cluster]:
    settings = {**SESSION, **ON_CITUS, "statement_timeout": "60s"}
    session = await asyncpg.connect(citus, server_settings=settings)
    made = Cluster(session, citus)
    session.add_log_listener(lambda _, message: made.sent.append(message.message))
    await session.execute("SET client_min_messages = notice; SET citus.log_remote_commands = on")
    yield made
    await session.close()


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
