"""On a Citus cluster (CUOTA_TEST_CITUS): a merchant's call is one command to the one node that has the merchant."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID, uuid4

import asyncpg
import pytest

from cuota.core.order.movement import MovementKind
from cuota.db.citus import MERCHANT, PLACES
from cuota.db.desk import api_requests
from cuota.db.desk.api_requests import NewApiRequest
from cuota.db.hosts import Honest
from cuota.db.order import outcomes
from cuota.db.pool import ON_CITUS, SESSION
from support.db.across import ACROSS
from support.db.cluster_session import WORKER_OF, Cluster
from support.db.filled import TEMPLATES, filled
from support.db.made_orders import approved, created, moved, read_again
from support.db.statements import statements


@pytest.fixture
async def cluster(citus: str) -> AsyncIterator[Cluster]:
    settings = {**SESSION, **ON_CITUS, "statement_timeout": "60s"}
    session = await asyncpg.connect(citus, server_settings=settings, connection_class=Honest)
    made = Cluster(session, citus)
    session.add_log_listener(lambda _, message: made.sent.append(message.message))
    await session.execute("SET client_min_messages = notice; SET citus.log_remote_commands = on")
    yield made
    await session.close()


# Modules whose statements run in requests of merchants or consumers.
ONE_TASK = (
    "orders.",
    "listing.",
    "checkouts.",
    "sdk_checkouts.",
    "virtual_cards.",
    "plans.",
    "idempotency.",
    "endpoints.",
    "charges._PENDING",
)
# These statements are not planned: their names are filled in later, or they never run on Citus.
NOT_PLANNED = ("secrets.", "clock._NEXT_IN", "history._PAST", "terms_row.AT")
PLAIN_ONLY = ("lanes._LANES", "lanes._REMOVED", "recalculate._MERCHANTS")
SAMPLES = {
    "uuid": str(UUID(int=7)),
    "text": "capture",
    "bytea": "\\x00",
    "json": "{}",
    "interval": "1 day",
    "time": "17:00",
    "boolean": "true",
}


def literal(kind: str) -> str:
    """Return an SQL value of this type."""
    base = kind.removesuffix("[]")
    sample = SAMPLES.get(base, "2026-03-01" if base.startswith(("timestamp", "date")) else "1")
    if base != kind:
        sample = '{"' + sample.replace("\\", "\\\\") + '"}'
    return f"'{sample}'::{kind}"


def sample(sql: str, n: int, kind: str) -> str:
    """Return a value for the parameter $n of a statement."""
    if re.search(rf"\${n}::\w+ IS NULL", sql):
        # Null means all rows for such a parameter, and then the statement reads the most.
        return f"NULL::{kind}"
    if f"merchant_id = ANY (${n}::uuid[])" in sql:
        return "ARRAY(SELECT md5(n::text)::uuid FROM generate_series(1, 200) n)"
    return literal("json" if f"${n}::text::json" in sql else kind)


SHARDED = {name for name, place in PLACES.items() if place == MERCHANT}
ASKED = {
    name: sql
    for name, sql in [*statements(), *filled()]
    if set(re.findall(r"(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)", sql)) & SHARDED
    and not name.startswith(NOT_PLANNED)
    and name not in TEMPLATES
    and name not in PLAIN_ONLY
}


async def tasks(session: asyncpg.Connection, sql: str) -> list[int]:
    """Return the number of shards for each part of a statement. The plan is a custom plan, as in the service's sessions."""
    prepared = await session.prepare(sql)
    literals = [sample(sql, n, each.name) for n, each in enumerate(prepared.get_parameters(), 1)]
    known = re.sub(r"\$(\d+)", lambda found: literals[int(found[1]) - 1], sql)
    plan = await session.fetch(f"EXPLAIN {known}")
    return [int(found[1]) for row in plan if (found := re.fullmatch(r"\s*Task Count: (\d+)", row[0]))]


@pytest.mark.parametrize("name", ASKED)
async def test_a_statement_is_planned_for_one_shard_or_is_listed_as_one_that_spans_merchants(
    cluster: Cluster, name: str
) -> None:
    counts = await tasks(cluster.session, ASKED[name])
    assert counts
    assert (max(counts) > 1) == (name in ACROSS)


@pytest.mark.parametrize("name", [name for name in ASKED if name.startswith(ONE_TASK) and name not in ACROSS])
async def test_each_read_in_a_merchant_s_call_is_one_task(cluster: Cluster, name: str) -> None:
    assert await tasks(cluster.session, ASKED[name]) == [1]


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
    # By default, PostgreSQL may use a generic plan after five calls, so make more calls than that.
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
    # One of the captures was decided on a stale order.
    captures[3] = moved(batch[3].order, MovementKind.CAPTURE, "r", 100)
    done, sent = await cluster.commands(outcomes._save_together(session, captures))
    assert (done, sent) == ([n != 3 for n in range(16)], ["SELECT public.save_orders"])
    assert await session.fetchval("SELECT count(*) FROM movements WHERE merchant_id = $1", merchant_id) == 15


def logged(count: int) -> list[NewApiRequest]:
    """Return this many calls for the request log."""
    return [
        NewApiRequest(str(uuid4()), "client", "127.0.0.1", "GET", "/order", None, 200, None, 1.5, False, None, None, None)
        for _ in range(count)
    ]  # fmt: skip


async def test_the_calls_of_one_merchant_are_logged_in_one_command_to_one_node(cluster: Cluster) -> None:
    merchant_id = uuid4()
    _, sent = await cluster.commands(api_requests.add(cluster.session, merchant_id, logged(20)))
    assert sent == ["SELECT public.log_api_requests"]
    kept = "SELECT count(*) FROM api_requests WHERE merchant_id = $1"
    assert await cluster.session.fetchval(kept, merchant_id) == 20


async def test_the_node_that_runs_a_save_sends_no_command_to_another_node(cluster: Cluster) -> None:
    """Call the function on the worker itself. The worker's log must have no command to another node."""
    merchant_id = uuid4()
    new = created(merchant_id)
    port = await cluster.session.fetchval(WORKER_OF, merchant_id)
    url = re.sub(r":\d+/", f":{port}/", cluster.url)
    settings = {**SESSION, **ON_CITUS, "statement_timeout": "60s"}
    session = await asyncpg.connect(url, server_settings=settings, connection_class=Honest)
    worker = Cluster(session, url)
    session.add_log_listener(lambda _, message: worker.sent.append(message.message))
    await session.execute("SET client_min_messages = notice; SET citus.log_remote_commands = on")
    try:
        assert await worker.commands(outcomes.create(session, new)) == (True, [])
        assert await worker.commands(api_requests.add(session, merchant_id, logged(3))) == (None, [])
        outcome = approved(new.order)
        assert await worker.commands(outcomes.save(session, outcome)) == (True, [])
        for kind in (MovementKind.CAPTURE, MovementKind.REFUND, MovementKind.VOID):
            outcome = moved(read_again(outcome), kind, "r", 100)
            assert await worker.commands(outcomes.save(session, outcome)) == (True, [])
    finally:
        await session.close()


async def test_a_stale_save_writes_nothing_and_the_constraints_on_a_shard_refuse_wrong_rows(
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
