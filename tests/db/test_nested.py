"""Rows inside a row keep every value exactly, and no session queries the catalog for the types of a statement."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from cuota.core.installment import Installment
from cuota.core.order.movement import MovementKind
from cuota.db.nested import Nested
from cuota.db.order import orders, outcomes
from support.db.made_orders import approved, created, moved, read_again
from support.db.statements import OF_CITUS, every_statement
from support.own_service import Own

NEW = Nested(
    "n",
    ("t.at", "t.day", "t.cents", "t.id", "t.word", "t.yes"),
    """FROM (VALUES
        (1, '2026-03-01 12:00:00.123456+00'::timestamptz, '2026-02-28'::date, 9007199254740993, $1::uuid, 'a,"b"{}'::text, true),
        (2, NULL, NULL, NULL, NULL, NULL, NULL),
        (3, '2026-03-01 12:00:00.000001+00', '9999-12-31', -1, $1, '', false)) t (n, at, day, cents, id, word, yes)
    ORDER BY t.n""",
)


async def test_a_nested_value_is_exact_to_the_microsecond_and_the_cent_and_null_is_still_null(
    own: Own,
) -> None:
    name = uuid4()
    row = await own.context.pool.fetchrow(f"SELECT {NEW.columns} FROM (SELECT 1) o {NEW.join}", name)
    assert row is not None
    at = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
    assert list(NEW.of(row)) == [
        # A float cannot represent this number of cents exactly.
        (at.replace(microsecond=123456), date(2026, 2, 28), 9007199254740993, name, 'a,"b"{}', True),
        (None,) * 6,
        (at.replace(microsecond=1), date(9999, 12, 31), -1, name, "", False),
    ]


async def test_zero_rows_are_read_as_an_empty_list(own: Own) -> None:
    none = Nested("none", ("t.a", "t.b"), "FROM (SELECT 1 AS a, 2 AS b) t WHERE t.a = $1")
    row = await own.context.pool.fetchrow(f"SELECT {none.columns} FROM (SELECT 1) o {none.join}", 2)
    assert row is not None
    assert list(none.of(row)) == []


async def test_a_plan_and_its_movements_are_read_as_they_were_saved(own: Own) -> None:
    pool, new = own.context.pool, created(uuid4())
    assert await outcomes.create(pool, new)
    outcome = approved(new.order)
    charge_at = datetime(2026, 3, 15, 9, 0, 0, 123457, tzinfo=UTC)
    plan = list(outcome.installments)
    plan[1] = Installment(2, plan[1].due_on, 2500, 0, None, 0, charge_at, charge_at - timedelta(days=3), 2)
    assert await outcomes.save(pool, _with_plan(outcome, plan))
    capture = moved(read_again(outcome), MovementKind.CAPTURE, "r", 3001)
    assert await outcomes.save(pool, capture)
    found = await orders.read_with_plan(pool, new.order.merchant_id, new.order.order_id)
    assert found is not None
    assert found.plan == tuple(plan)
    record = await orders.read_record(pool, new.order.merchant_id, new.order.order_id)
    assert record is not None
    assert record.movements == (capture.movement,)


def _with_plan(outcome: Any, plan: list[Installment]) -> Any:
    from dataclasses import replace

    return replace(outcome, installments=tuple(plan))


async def test_no_session_queries_the_catalog_for_the_types_of_a_statement(own: Own) -> None:
    asked: list[str] = []
    async with own.context.pool.session() as session:
        session.add_query_logger(lambda record: asked.append(record.query))
        for name, sql in every_statement():
            try:
                await session.prepare(sql)
            except asyncpg.PostgresError:
                # The statement is a template whose names are filled in later, or it calls a function of Citus.
                assert "{" in sql or name == "history._PAST" or name.startswith(OF_CITUS), name
            assert asked == [], f"{name} has a type that db/hosts.py does not list"


@pytest.mark.parametrize(("name", "sql"), list(every_statement()), ids=lambda value: value[:40])
def test_no_statement_returns_a_record_without_a_named_type(name: str, sql: str) -> None:
    assert "ROW(" not in sql.upper(), f"{name}: use db/nested.py; Citus cannot send such a record"
