"""Sharding by merchant: every table has its place. Every statement uses one shard, or a list here gives the reason.

The tests read the database's catalog and the text of the statements. They need no cluster (docs/scaling.md lists the
measurements on a cluster).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from cuota.db import citus
from cuota.db.citus import CONSUMER, COORDINATOR, EVERYWHERE, MERCHANT, PLACES
from support.db import save_functions
from support.db.across import ACROSS
from support.db.statements import every_statement
from support.folders import new_folder

_TABLES = {name for name, place in PLACES.items() if place == MERCHANT}
_SET = re.compile(r"UPDATE (\w+)(?: [a-z]\w*)? SET (.*?)(?:\bFROM\b|\bWHERE\b|$)", re.DOTALL)
_MENTION = re.compile(r"(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)")
# A join by `x.merchant_id = y.merchant_id` is not enough, because Citus then reads every shard. A merchant that may be
# null is not enough either.
_KEY = re.compile(r"(?<!IS NULL OR \w\.)merchant_id\s*=\s*\$\d|INTO \w+(?: AS \w+)?\s*\(merchant_id")


def mentioned(sql: str) -> list[str]:
    return _MENTION.findall(sql)


@pytest.fixture
async def owner(own_database: dict[str, Any]) -> Any:
    connection = await asyncpg.connect(**own_database)
    yield connection
    await connection.close()


async def test_every_table_has_a_place_and_every_place_has_a_table(owner: asyncpg.Connection) -> None:
    rows = await owner.fetch(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information)'"
    )
    assert {row["tablename"] for row in rows if row["schemaname"] == "public"} == set(PLACES)
    assert {row["schemaname"] for row in rows} == {"public", *citus.SIMULATORS}


async def test_every_unique_key_of_a_merchant_s_table_contains_the_merchant(
    owner: asyncpg.Connection,
) -> None:
    """Citus accepts no other unique key, because each shard checks only its own rows."""
    rows = await owner.fetch(
        """SELECT c.relname AS table, i.indexrelid::regclass::text AS index, EXISTS (
            SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY(i.indkey)
                AND a.attname = 'merchant_id') AS named
        FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE i.indisunique
            AND c.relnamespace = 'public'::regnamespace AND c.relname = ANY($1)""",
        list(_TABLES),
    )
    assert {row["table"] for row in rows} == _TABLES
    assert [row["index"] for row in rows if not row["named"]] == []


async def test_no_foreign_key_connects_tables_of_different_places(owner: asyncpg.Connection) -> None:
    rows = await owner.fetch(
        """SELECT conrelid::regclass::text AS here, confrelid::regclass::text AS there FROM pg_constraint
        WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND conrelid::regclass::text = ANY ($1)""",
        # On a Citus cluster, the coordinator also has the shards of reference tables.
        list(PLACES),
    )
    assert rows
    for row in rows:
        assert PLACES[row["here"]] == PLACES[row["there"]], row


def test_each_table_is_distributed_once_and_after_the_tables_that_it_references() -> None:
    plan = citus.statements()
    moved = [table for table, _ in plan]
    assert sorted(moved) == sorted(name for name, place in PLACES.items() if place != COORDINATOR)
    assert moved.index("merchants") < moved.index("credentials") < moved.index("orders")
    for table, sql in plan:
        if PLACES[table] == EVERYWHERE:
            assert sql == f"SELECT create_reference_table('{table}')"
        elif PLACES[table] == CONSUMER:
            colocated = "none" if table == "consumer_exposure" else "consumer_exposure"
            assert (
                sql
                == f"SELECT create_distributed_table('{table}', 'consumer_id', colocate_with => '{colocated}')"
            )
        else:
            colocated = "" if table == "orders" else ", colocate_with => 'orders'"
            assert sql == f"SELECT create_distributed_table('{table}', 'merchant_id'{colocated})"


@pytest.mark.parametrize(("name", "sql"), list(every_statement()), ids=lambda value: value[:40])
def test_a_statement_names_the_merchant_for_each_of_its_sharded_tables(name: str, sql: str) -> None:
    sharded = [table for table in mentioned(sql) if table in _TABLES]
    named = len(_KEY.findall(sql))
    if name not in ACROSS:
        assert named >= len(sharded), (
            f"{name} reads {sharded} and names merchant_id {named} times: it would leave its shard"
        )
    elif ACROSS[name].startswith("reads"):
        assert not re.search(r"INSERT|UPDATE|DELETE", sql), f"{name} goes over all shards: it may only read"
    elif ACROSS[name].startswith("sweeps"):
        assert sql.startswith("DELETE FROM")
        assert len(set(sharded)) == 1


@pytest.mark.parametrize(("name", "sql"), list(save_functions.statements()), ids=lambda value: value[:40])
def test_each_statement_that_saves_an_order_names_one_merchant_and_one_table(name: str, sql: str) -> None:
    """Then Citus needs only one shard. A statement must not assign an element of an array, because Citus 13.2 crashes on it."""
    assert len([table for table in mentioned(sql) if table in PLACES]) == 1
    assert re.search(r"merchant_id = \$1::uuid|\(merchant_id,.*?(?:VALUES \(|SELECT )\$1::uuid", sql)
    assert not re.search(r"SET .*?\w = \(\$\d+::\w+\[\]\)\[", sql.split(" WHERE ", maxsplit=1)[0])


@pytest.mark.parametrize(("name", "sql"), list(every_statement()), ids=lambda value: value[:40])
def test_no_update_of_a_sharded_table_computes_a_time_from_a_column(name: str, sql: str) -> None:
    """Citus 13.2 refuses it: STABLE functions used in UPDATE queries cannot be called with column references."""
    for table, values in _SET.findall(sql):
        assert table not in _TABLES or "interval" not in values, f"{name} computes a time in SET"


@pytest.mark.parametrize(("name", "sql"), list(every_statement()), ids=lambda value: value[:40])
def test_no_statement_joins_a_sharded_table_with_a_table_of_the_coordinator(name: str, sql: str) -> None:
    places = {PLACES[table] for table in mentioned(sql) if table in PLACES}
    assert name.startswith("clock.") or not {MERCHANT, COORDINATOR} <= places


def test_no_statement_writes_a_reference_table_and_also_uses_a_sharded_table() -> None:
    for name, sql in every_statement():
        written = {PLACES.get(table) for table in re.findall(r"(?:INTO|UPDATE|DELETE FROM)\s+(\w+)", sql)}
        read = {PLACES.get(table) for table in mentioned(sql)}
        assert EVERYWHERE not in written or not {MERCHANT, CONSUMER} & read, name


def test_no_statement_joins_a_consumer_s_table_with_another_table() -> None:
    """A consumer's limit and a merchant's orders are on different nodes, so no statement may use both."""
    found = {
        name: {PLACES[table] for table in mentioned(sql) if table in PLACES}
        for name, sql in every_statement()
    }
    assert {name for name, places in found.items() if CONSUMER in places} == {
        "history._LOCK", "history._LOCK_FIRST", "history._CHANGED", "reservations._EXPIRED", "reservations._OPEN",
        "reservations._RESERVED", "reservations._OF_CONSUMER", "waivers._SETTLE", "waivers._RELEASE", "waivers._UNSETTLED",
        "waivers._USED", "waivers._WAIVER",
    }  # fmt: skip
    assert [name for name, places in found.items() if CONSUMER in places and len(places) > 1] == []


@pytest.mark.parametrize("function", ["reserve_exposure", "finish_reservation", "reserve_waiver"])
def test_a_function_of_the_limit_names_one_consumer_in_each_statement(function: str) -> None:
    _, body = save_functions.sources()[function]
    statements = save_functions.STATEMENT.findall(body)
    assert len(statements) >= 2
    for statement in statements:
        assert {PLACES[table] for table in mentioned(statement) if table in PLACES} == {CONSUMER}
        assert re.search(r"consumer_id = consumer|VALUES \(consumer,", statement), statement


def test_every_exception_still_has_its_statement() -> None:
    names = dict(every_statement())
    assert set(ACROSS) <= set(names)
    for name in ACROSS:
        sharded = [table for table in mentioned(names[name]) if table in _TABLES]
        assert len(_KEY.findall(names[name])) < len(sharded), (
            f"{name} names the merchant: take it off the list"
        )


@pytest.fixture
def fresh() -> Iterator[dict[str, str]]:
    """Return the environment of a command on an empty data folder."""
    path = new_folder("cuota-test-")
    yield {**os.environ, "CUOTA_DATA_DIR": str(path / "data")}
    shutil.rmtree(path, ignore_errors=True)


def test_without_citus_the_command_says_so_and_changes_nothing(fresh: dict[str, str]) -> None:
    call = [sys.executable, "-m", "cuota", "migrate", "--json"]
    refused = subprocess.run([*call, "--citus"], env=fresh, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "The database does not have Citus" in refused.stderr
    applied = subprocess.run(call, env=fresh, capture_output=True, text=True, check=True)
    assert json.loads(applied.stdout)["applied"][0] == "0001_foundation"
