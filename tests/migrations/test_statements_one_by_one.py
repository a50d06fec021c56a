"""Migrations can run on distributed tables: they can be split into statements, and Citus accepts each of them
(docs/scaling.md)."""

from __future__ import annotations

import re
from typing import Any

import asyncpg
import pytest

from cuota.db.citus import COORDINATOR, PLACES
from cuota.db.migrate import _TABLE, files
from cuota.db.script import statements_of

# Databases were distributed from this migration on. Those before it run only on plain tables.
FIRST_LATER = "0018"
COLUMNS = """SELECT table_schema, table_name, column_name, data_type, column_default, is_nullable
    FROM information_schema.columns WHERE table_schema !~ '^(pg_|information)' ORDER BY 1, 2, 3"""
FUNCTIONS = "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1, 2"


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("A; B;", ["A", "B"]),
        ("-- a; b\nA /* ; */ B;\n-- c", ["A   B"]),
        ("A ';' \"x;\" B; C", ["A ';' \"x;\" B", "C"]),
        ("A 'it''s;' ; B", ["A 'it''s;'", "B"]),
        (r"A E'\';' ; B", [r"A E'\';'", "B"]),
        ("A $$ b; $1 $$; B", ["A $$ b; $1 $$", "B"]),
        ("A $t$ $$;$$ $t$; B", ["A $t$ $$;$$ $t$", "B"]),
        ("A - 1 * 2 / 3;", ["A - 1 * 2 / 3"]),
    ],
)
def test_a_script_is_split_at_the_semicolons_between_statements(sql: str, parts: list[str]) -> None:
    assert statements_of(sql) == parts


async def test_every_migration_has_the_same_result_if_it_runs_statement_by_statement(
    empty: dict[str, Any], own_database: dict[str, Any]
) -> None:
    whole, split = await asyncpg.connect(**own_database), await asyncpg.connect(**empty)
    await split.execute(_TABLE)
    for _, script in files():
        for statement in statements_of(script):
            await split.execute(statement)
    for sql in (COLUMNS, FUNCTIONS):
        rows = [tuple(row) for row in await split.fetch(sql)]
        assert rows == [tuple(row) for row in await whole.fetch(sql)]
    await split.close()
    await whole.close()


@pytest.mark.parametrize(("name", "sql"), files(), ids=lambda value: value[:30])
def test_a_later_migration_has_no_statement_that_citus_refuses_on_distributed_tables(
    name: str, sql: str
) -> None:
    if name < FIRST_LATER:
        return
    for statement in statements_of(sql):
        text = " ".join(statement.split())
        changed = re.match(r"ALTER TABLE (?:ONLY )?(\w+) (.*)", text)
        dropped = re.match(r"DROP TRIGGER (?:IF EXISTS )?\w+ ON (\w+)", text)
        if dropped and PLACES.get(dropped[1]) != COORDINATOR:
            raise AssertionError(f"{name}: DROP TRIGGER does not reach the shards: replace its function")
        if not changed or PLACES.get(changed[1]) in (COORDINATOR, None):
            continue
        assert "ABLE TRIGGER" not in changed[2], f"{name}: it does not reach the shards: replace its function"
        if "ADD CONSTRAINT" in changed[2]:
            one = re.fullmatch(r"ADD CONSTRAINT \w+ \w+[^(]*\(.*\)[^,]*", changed[2])
            assert one, f"{name}: give ADD CONSTRAINT a statement of its own: {text}"
        for check in re.finditer(r"ADD COLUMN (.*?)\bCHECK\b", changed[2]):
            assert "CONSTRAINT" in check[1], (
                f"{name}: name the CHECK of a new column: CONSTRAINT name CHECK (...)"
            )
