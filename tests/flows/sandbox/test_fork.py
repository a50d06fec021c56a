"""The whole sandbox is copied to a fork, and restored from it."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import pytest

from cuota.db.sandbox import forks
from cuota.db.verify.recalculate import verify
from cuota.flows.sandbox.fork_sandbox import forget, fork, rewind
from cuota.flows.sandbox.move_time import CannotMoveTime
from support.time.sandbox import Sandbox


async def everything(sandbox: Sandbox) -> dict[str, list[str]]:
    """Return every row of every copied table, as text."""
    connection = await asyncpg.connect(**sandbox.where)
    try:
        return {
            table.name: sorted(
                row[0] for row in await connection.fetch(f"SELECT t::text FROM {table.name} t")
            )
            for table in await forks.tables(connection)
        }
    finally:
        await connection.close()


async def quiet(sandbox: Sandbox) -> None:
    """Wait until no work is due that the worker could do during the test."""
    await sandbox.advance("1m")


async def test_a_rewind_brings_back_every_row_and_the_clock(sandbox: Sandbox) -> None:
    order = await sandbox.merchant.approved()
    await sandbox.merchant.move(order, "capture", "60.00")
    await sandbox.merchant.move(order, "refund", "10.00")
    await quiet(sandbox)
    began = time.monotonic()
    copied = await fork(sandbox.where, "before")
    before = await everything(sandbox)
    assert before['"public"."orders"']
    assert before['"card_simulator"."charges"']
    await sandbox.advance("60d")
    await sandbox.merchant.approved()
    assert await everything(sandbox) != before
    back = await rewind(sandbox.where, "before")
    # The sessions of a browser and the hour's limits are copied too; nothing runs that could change a row.
    assert await everything(sandbox) == before
    assert back.rows == copied.rows == sum(map(len, before.values()))
    # The clock shows the fork's time plus the real time that has passed since, not the sixty days.
    gone = (await sandbox.now() - copied.service_time).total_seconds()
    assert 0 <= gone <= time.monotonic() - began + 1
    report = await verify(sandbox.context.pool)
    assert report.orders == 1
    assert report.disagreements == []


async def test_advancing_twice_from_the_same_fork_has_the_same_result(sandbox: Sandbox) -> None:
    order = await sandbox.merchant.approved()
    await quiet(sandbox)
    await fork(sandbox.where, "start")
    lived = []
    for _ in range(2):
        await sandbox.advance("60d")
        lived.append(await sandbox.events(order))
        assert (await verify(sandbox.context.pool)).disagreements == []
        await rewind(sandbox.where, "start")
    assert lived[0] == lived[1]
    assert len(lived[0]) == 5
    # The service has also dropped its caches of the first future, so it works with the restored data.
    assert (await sandbox.merchant.move(order, "capture", "100.00")).status_code == 200
    assert (await sandbox.merchant.approved())["orderId"]


async def test_a_merchant_created_after_the_fork_is_unknown_immediately_after_the_rewind(
    sandbox: Sandbox,
) -> None:
    from support.makers import make_merchant

    await fork(sandbox.where, "empty")
    async with make_merchant(sandbox.service) as later:
        assert (await later.http.get("/configuration")).status_code == 200
        await rewind(sandbox.where, "empty")
        assert (await later.http.get("/configuration")).status_code == 401
    assert (await sandbox.merchant.http.get("/configuration")).status_code == 200


async def test_after_a_rewind_the_triggers_of_the_ledger_work_again(sandbox: Sandbox) -> None:
    await sandbox.merchant.approved()
    await fork(sandbox.where, "f")
    await rewind(sandbox.where, "f")
    with pytest.raises(asyncpg.PostgresError, match="append-only"):
        await sandbox.fetch("UPDATE transfers SET amount = amount + 1")
    with pytest.raises(asyncpg.PostgresError, match="append-only"):
        await sandbox.fetch("TRUNCATE events")


async def test_new_tables_are_copied_too_and_their_sequences_continue(sandbox: Sandbox) -> None:
    await sandbox.fetch("CREATE TABLE parents (number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY)")
    await sandbox.fetch(
        'CREATE TABLE "A child" (of integer REFERENCES parents, twice integer GENERATED ALWAYS AS (of * 2) STORED)'
    )
    await sandbox.fetch("INSERT INTO parents DEFAULT VALUES")
    await sandbox.fetch('INSERT INTO "A child" VALUES (1)')
    await fork(sandbox.where, "later")
    for _ in range(3):
        await sandbox.fetch("INSERT INTO parents DEFAULT VALUES")
    await rewind(sandbox.where, "later")
    assert [tuple(row) for row in await sandbox.fetch('SELECT * FROM "A child"')] == [(1, 2)]
    await sandbox.fetch("INSERT INTO parents DEFAULT VALUES")
    assert [row["number"] for row in await sandbox.fetch("SELECT number FROM parents ORDER BY 1")] == [1, 2]


async def test_every_table_is_copied_or_has_a_reason_not_to_be(sandbox: Sandbox) -> None:
    there = await sandbox.fetch(
        "SELECT table_schema || '.' || table_name AS name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
        " AND table_schema NOT IN ('pg_catalog', 'information_schema')"
    )
    copied = {name.replace('"', "") for name in await everything(sandbox)}
    assert {row["name"] for row in there} == copied | set(forks.KEPT)


async def test_a_name_that_is_taken_is_refused_unless_it_is_replaced(sandbox: Sandbox) -> None:
    await fork(sandbox.where, "mine")
    with pytest.raises(CannotMoveTime, match="--replace"):
        await fork(sandbox.where, "mine")
    order = await sandbox.merchant.create()
    await fork(sandbox.where, "mine", replace=True)
    await rewind(sandbox.where, "mine")
    assert (await sandbox.merchant.read(order))["orderStatus"] == "Created"


async def test_of_two_forks_with_one_name_at_the_same_moment_one_is_made_and_one_is_refused(
    sandbox: Sandbox,
) -> None:
    both = await asyncio.gather(*(fork(sandbox.where, "mine") for _ in range(2)), return_exceptions=True)
    refused = [found for found in both if isinstance(found, BaseException)]
    assert len(refused) == 1
    assert isinstance(refused[0], CannotMoveTime)
    await rewind(sandbox.where, "mine")


@pytest.mark.parametrize("name", ["", "A", "1a", "a b", 'a"; DROP SCHEMA public', "a" * 32, "../a"])
async def test_an_invalid_name_is_refused(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(CannotMoveTime, match="is not a valid name for a fork"):
        await fork(sandbox.where, name)


async def test_the_error_about_an_unknown_fork_lists_the_existing_ones(sandbox: Sandbox) -> None:
    with pytest.raises(CannotMoveTime, match="There are no forks"):
        await rewind(sandbox.where, "nowhere")
    await fork(sandbox.where, "here")
    with pytest.raises(CannotMoveTime, match="The forks are: here"):
        await rewind(sandbox.where, "nowhere")
    await forget(sandbox.where, "here")
    assert await sandbox.fetch("SELECT FROM pg_namespace WHERE nspname LIKE 'fork%'") == []
    with pytest.raises(CannotMoveTime, match="There are no forks"):
        await forget(sandbox.where, "here")


async def test_a_fork_of_another_release_is_refused_and_nothing_changes(sandbox: Sandbox) -> None:
    await fork(sandbox.where, "old")
    await sandbox.fetch("UPDATE forks SET migrations = migrations[1:2]")
    order = await sandbox.merchant.create()
    with pytest.raises(CannotMoveTime, match="Another release"):
        await rewind(sandbox.where, "old")
    assert (await sandbox.merchant.read(order))["orderStatus"] == "Created"


async def test_the_service_s_role_has_no_access_to_forks(sandbox: Sandbox) -> None:
    await fork(sandbox.where, "closed")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await sandbox.context.pool.fetch('SELECT * FROM fork_closed."public.merchants"')
