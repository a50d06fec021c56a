"""A statement over all merchants can be restricted to some of them at each of its tables. A cluster with a dead node needs this."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from cuota.db.citus import MERCHANT, PLACES
from cuota.db.cluster.narrow import narrow
from support.db.across import ACROSS
from support.db.filled import filled
from support.db.statements import FOLDER, statements

_SHARDED = {name for name, place in PLACES.items() if place == MERCHANT}
_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)\b(?! WHERE merchant_id = ANY \(\$99::uuid\[\]\)\))")
# These are templates, or they never run while a node is down.
_NOT_READ = ("history._PAST", "clock._NEXT")
READS = {
    name: sql
    for name, sql in [*statements(), *filled()]
    if ACROSS.get(name, "").startswith("reads") and name not in _NOT_READ
}
# The functions that restrict their second argument if a node is down, and the names of their own parameters.
_ACROSS = {"fetch_across", "find_one", "claim_across", "sweep"}
_PASSED_ON = {"sql", "due", "find", "merchants"}


def _restricted() -> Iterator[str]:
    """Return the name of each constant of db that these functions get, as module._NAME."""
    for file in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ACROSS:
                statement = node.args[1]
                if isinstance(statement, ast.Name) and statement.id not in _PASSED_ON:
                    yield f"{file.stem}.{statement.id}"


def test_every_statement_that_may_be_restricted_is_tested_here() -> None:
    names = set(_restricted())
    assert len(names) > 20
    assert names <= READS.keys()


@pytest.mark.parametrize("name", READS)
def test_every_table_with_merchants_rows_is_restricted(name: str) -> None:
    narrowed = narrow(READS[name], 99)
    assert not _SHARDED.intersection(_TABLE.findall(narrowed)), narrowed


async def test_every_restricted_statement_is_valid_and_takes_the_merchants_as_its_last_value(
    own_database: dict[str, Any],
) -> None:
    owner = await asyncpg.connect(**own_database)
    for name, sql in READS.items():
        before = await owner.prepare(sql)
        values = len(before.get_parameters())
        after = await owner.prepare(narrow(sql, values + 1))
        assert [each.name for each in after.get_parameters()][-1] == "uuid[]", name
        # The other values and the columns are the same.
        assert after.get_parameters()[:-1] == before.get_parameters(), name
        assert _columns(after) == _columns(before), name
    await owner.close()


async def test_the_service_may_read_every_column_of_the_restricted_tables(
    own_database: dict[str, Any],
) -> None:
    owner = await asyncpg.connect(**own_database)
    await owner.execute("SET ROLE cuota_app")
    for table in sorted(_SHARDED):
        await owner.fetch(f"SELECT * FROM {table} LIMIT 0")
    await owner.close()


def _columns(prepared: Any) -> list[tuple[str, str]]:
    return [(each.name, each.type.name) for each in prepared.get_attributes()]
