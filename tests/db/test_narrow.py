"""A statement over all merchants can be restricted to some of them at each of its tables. A cluster with a dead node needs this."""

from __future__ import annotations

import re
from typing import Any

import asyncpg
import pytest

from cuota.db.citus import MERCHANT, PLACES
from cuota.db.cluster.narrow import narrow
from support.db.across import ACROSS
from support.db.filled import filled
from support.db.statements import statements

_SHARDED = {name for name, place in PLACES.items() if place == MERCHANT}
_TABLE = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)\b(?! WHERE merchant_id = ANY \(\$99::uuid\[\]\)\))")
# These are templates, or they never run while a node is down.
_NOT_READ = ("history._PAST", "clock._NEXT")
READS = {
    name: sql
    for name, sql in [*statements(), *filled()]
    if ACROSS.get(name, "").startswith("reads") and name not in _NOT_READ
}


@pytest.mark.parametrize("name", READS)
def test_every_table_with_merchants_rows_is_restricted(name: str) -> None:
    narrowed = narrow(READS[name], 99)
    assert not _SHARDED.intersection(_TABLE.findall(narrowed)), narrowed


async def test_every_restricted_statement_is_valid_and_takes_the_merchants_as_its_last_value(
    own_database: dict[str, Any],
) -> None:
    owner = await asyncpg.connect(**own_database)
    for name, sql in READS.items():
        values = len((await owner.prepare(sql)).get_parameters())
        prepared = await owner.prepare(narrow(sql, values + 1))
        kinds = [each.name for each in prepared.get_parameters()]
        assert kinds[-1] == "uuid[]", name
    await owner.close()
