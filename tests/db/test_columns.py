"""One list of columns for reads and writes: no column is missing from it, and no value lands in another column."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from cuota.core.installment import Installment
from cuota.core.ledger import Account, Transfer
from cuota.core.order.event import Event
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.db.order import columns, orders, outcome_tables, outcomes, review_tables
from cuota.db.order.outcomes import NewOrder
from cuota.flows.context import new_id, new_token
from support.db import save_functions
from support.own_service import Own

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TYPES = "SELECT attname, atttypid::regtype::text FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped"
NAMED = "SELECT to_regtype($1)::text"
# These columns are parts of the row's key, or save_orders counts them.
KEYS = {"merchant_id", "order_id", "version"}


def names(typed: tuple[str, ...]) -> list[str]:
    return [column.split()[0] for column in typed]


@pytest.mark.parametrize("table", ["orders", "installments"])
async def test_every_column_of_the_table_is_in_the_list_with_its_type(own: Own, table: str) -> None:
    listed = [column.typed for column in columns.ORDER] if table == "orders" else [*columns.INSTALLMENT]
    if table == "installments":
        listed += ["merchant_id uuid", "order_id uuid", "written_off_at timestamptz"]
    async with own.owner() as owner:
        there = {row[0]: row[1] for row in await owner.fetch(TYPES, table)}
        known = {name: await owner.fetchval(NAMED, kind) for name, kind in map(str.split, listed)}
    # The value is written as text, which the database converts to char(3).
    there = {name: "text" if kind == "character" else kind for name, kind in there.items()}
    assert known == there


def test_every_field_of_an_order_is_read_and_every_column_is_written_once() -> None:
    listed = {column.name for column in columns.ORDER}
    assert {field.name for field in fields(Order)} | {"token", "due_at"} == listed
    written = set(
        names(columns.NEW) + names(columns.CHANGED) + names(columns.CLAIMED) + names(columns.REVIEWED)
    )
    assert written | KEYS == listed
    for typed, flag in ((columns.NEW, "new"), (columns.CHANGED, "changed")):
        assert len(set(typed)) == len(typed)
        flagged = {column.name for column in columns.ORDER if getattr(column, flag)}
        assert set(names(typed)) | KEYS == flagged | KEYS


async def test_the_parameters_of_the_save_functions_have_the_order_in_which_values_are_sent(own: Own) -> None:
    named = """SELECT array_agg(name || ' ' || type::regtype ORDER BY n) FROM pg_proc,
        unnest(proargnames, proargtypes::oid[]) WITH ORDINALITY AS p (name, type, n) WHERE proname = $1
        AND NOT 'exposure_version' = ANY (proargnames)"""
    async with own.owner() as owner:
        for function, sent in save_functions.PARAMETERS.items():
            known = {kind: await owner.fetchval(NAMED, kind) for _, kind in map(str.split, sent)}
            sent_now = [f"{name} {known[kind]}" for name, kind in map(str.split, sent)]
            assert await owner.fetchval(named, function) == sent_now
            assert save_functions.parameters(function) == sent


def test_the_save_functions_read_every_field_of_a_json_row() -> None:
    sent = {table.name: table.columns for table, _ in outcome_tables.JSONS}
    assert save_functions.json_columns("save_orders") == sent
    reviewed = {table.name: table.columns for table in review_tables.JSONS}
    assert save_functions.json_columns("save_reviewed") == reviewed
    started = outcome_tables.STARTED
    assert save_functions.json_columns("create_orders") == {started.name: started.columns}


def new_order(own: Own) -> Order:
    return Order(
        merchant_id=own.merchant.merchant_id,
        order_id=new_id(),
        version=1,
        status=Status.CREATED,
        currency="USD",
        amount=10_007,
        fee=503,
        auto_capture=True,
        created_at=NOW,
        expires_at=NOW + timedelta(minutes=7),
        events=1,
    )


def moved(order: Order) -> tuple[Order, tuple[Installment, ...]]:
    """Return the order with a different value in every column that outcomes write, and a plan with different cents in
    each column."""
    new = replace(
        order,
        status=Status.APPROVED,
        captured=4001,
        voided=2003,
        refunded=1009,
        fee_returned=101,
        authorization_expires_at=NOW + timedelta(days=7),
        lapsed=True,
        warned=1,
        card_failures=2,
        charging=new_token(),
        charging_since=NOW + timedelta(days=3),
        collect_at=NOW + timedelta(days=14),
    )
    day = date(2026, 3, 1)
    plan = (
        Installment(1, day, 1500, 130, new_token(), 17, failures=3),
        Installment(2, day + timedelta(days=14), 1700, 110, new_token(), 19),
        Installment(3, day + timedelta(days=28), 1900, 90, charge_at=NOW + timedelta(days=4), remind_at=NOW),
        Installment(4, day + timedelta(days=42), 1895, 72, remind_at=NOW + timedelta(days=5), failures=1),
    )
    assert sum(item.amount for item in plan) == new.amount - new.voided - new.refunded
    assert sum(item.fee for item in plan) == new.fee - new.fee_returned
    return new, plan


def of_table(row: Any, made: type) -> dict[str, Any]:
    return {field.name: row[field.name] for field in fields(made)}


async def test_each_value_is_written_into_the_column_with_its_name_and_read_back(own: Own) -> None:
    begun, token = new_order(own), new_token()
    new = NewOrder(begun, token, "reference", "{}", (Event("order.created", begun.amount),))
    pool, ids = own.context.pool, (begun.merchant_id, begun.order_id)
    assert await outcomes.create(pool, new)
    found = await orders.read_with_plan(pool, *ids)
    assert found is not None
    assert found.order == begun

    changed, plan = moved(found.order)
    transfer = Transfer("capture", new_id(), Account.MERCHANT_PAYABLE, Account.PLAN_FEES, 5)
    outcome = Outcome(
        order=changed,
        installments=plan,
        transfers=(transfer,) * 3,
        events=(Event("order.approved", 1), Event("capture.completed", 2)),
        at=NOW,
    )
    assert await outcomes.save(pool, outcome)
    expected = replace(changed, version=2, transfers=3, events=3)
    found = await orders.read_with_plan(pool, *ids)
    assert found is not None
    assert (found.order, found.plan) == (expected, plan)

    # Compare by column name, without the list. The check above would not notice two columns swapped in both write and read.
    async with own.owner() as owner:
        row = await owner.fetchrow("SELECT * FROM orders WHERE order_id = $1", begun.order_id)
        rows = await owner.fetch(
            "SELECT * FROM installments WHERE order_id = $1 ORDER BY number", begun.order_id
        )
    assert (row["token"], row["due_at"]) == (token, expected.due_at)
    assert of_table(row, Order) == {field.name: getattr(expected, field.name) for field in fields(Order)}
    assert [of_table(each, Installment) for each in rows] == [
        {field.name: getattr(item, field.name) for field in fields(Installment)} for item in plan
    ]
    cents = ("amount", "fee", "captured", "voided", "refunded", "fee_returned")
    assert len({row[name] for name in cents}) == len(cents)
