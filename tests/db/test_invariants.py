"""The database itself prevents these changes. The tests try them in SQL on an approved order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from cuota.db.open_pool import open_pool
from support.own_service import Own

THIS = "merchant_id = $1 AND order_id = $2"
APPEND_ONLY = ("transfers", "movements", "events", "decisions")


async def sessions(own: Own) -> AsyncIterator[Any]:
    """Yield a session of the service, then a session of the owner, who has every right. Both must get the same errors."""
    pool = await open_pool(own.where, 1)
    try:
        async with pool.session() as connection:
            yield connection
    finally:
        await pool.close()
    async with own.owner() as connection:
        yield connection


@pytest.fixture
async def key(own: Own) -> tuple[UUID, UUID]:
    """An order of 100.00: 60.00 captured, 10.00 of it refunded, 20.00 voided, 20.00 left."""
    merchant = own.merchant
    order = await merchant.approved("100.00", merchantFeeForPaymentPlan="2.00")
    for operation, amount, reference in (
        ("capture", "60.00", "c"),
        ("refund", "10.00", "r"),
        ("void", "20.00", "v"),
    ):
        assert (await merchant.move(order, operation, amount, reference)).status_code == 200
    return merchant.merchant_id, UUID(order["orderId"])


IMPOSSIBLE_TOTALS = {
    "over-capture": ("captured = 8001", "no_over_capture"),
    "voided and captured above the amount": ("voided = 4001", "no_over_capture"),
    "over-refund": ("refunded = 6001", "no_over_refund"),
    "a refund of what is authorized and not captured": ("refunded = 8000", "no_over_refund"),
    "more fee returned than was paid": ("fee_returned = 201", "fee_returned_within_fee"),
    "fewer captured": ("captured = 5999", "only rise"),
    "fewer voided": ("voided = 1999", "only rise"),
    "fewer refunded": ("refunded = 999", "only rise"),
    "a lower amount": ("amount = 9999", "only rise"),
    "a higher amount": ("amount = 10001", "only rise"),
    "another fee": ("fee = 201", "only rise"),
    "Approved becomes Created": ("status = 'Created'", "stays so"),
    "Approved becomes Declined": ("status = 'Declined'", "stays so"),
    "Approved becomes Abandoned": ("status = 'Abandoned'", "stays so"),
    "a fifth status": ("status = 'Paid'", "stays so|orders_status_check"),
    "a void without a change of the plan": ("voided = 2001", "plan of order"),
    "a refund without a change of the plan": ("refunded = 1001", "plan of order"),
}


@pytest.mark.parametrize("what", IMPOSSIBLE_TOTALS)
async def test_totals_that_contradict_each_other_are_impossible(
    own: Own, key: tuple[UUID, UUID], what: str
) -> None:
    change, why = IMPOSSIBLE_TOTALS[what]
    async for connection in sessions(own):
        with pytest.raises(asyncpg.CheckViolationError, match=why):
            await connection.execute(f"UPDATE orders SET {change} WHERE {THIS}", *key)


async def test_a_movement_within_the_totals_is_possible(own: Own, key: tuple[UUID, UUID]) -> None:
    async for connection in sessions(own):
        assert (
            await connection.execute(f"UPDATE orders SET captured = captured + 1 WHERE {THIS}", *key)
            == "UPDATE 1"
        )


@pytest.mark.parametrize("kind", ["capture", "void", "refund"])
async def test_a_key_cannot_be_applied_twice(own: Own, key: tuple[UUID, UUID], kind: str) -> None:
    insert = "INSERT INTO movements VALUES ($1, $2, $3, $4, gen_random_uuid(), 1, now())"
    async for connection in sessions(own):
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute(insert, *key, kind, kind[0])


@pytest.mark.parametrize("total", ["captured", "voided"])
async def test_money_does_not_move_on_an_order_that_is_not_approved(own: Own, total: str) -> None:
    created = await own.merchant.create("100.00")
    async for connection in sessions(own):
        with pytest.raises(asyncpg.CheckViolationError, match="money_moves_on_approved_orders_only"):
            await connection.execute(
                f"UPDATE orders SET {total} = 1 WHERE {THIS}",
                own.merchant.merchant_id,
                UUID(created["orderId"]),
            )


@pytest.mark.parametrize(
    ("debit", "credit", "amount", "why"),
    [
        ("merchant_payable", "merchant_payable", 1, "two_sides"),
        ("merchant_payable", "card_clearing", 0, "amount_check"),
        ("merchant_payable", "card_clearing", -1, "amount_check"),
        ("merchant_payable", "my_pocket", 1, "known_accounts"),
        ("my_pocket", "merchant_payable", 1, "known_accounts"),
    ],
)
async def test_an_unbalanced_transfer_is_impossible(
    own: Own, key: tuple[UUID, UUID], debit: str, credit: str, amount: int, why: str
) -> None:
    insert = (
        "INSERT INTO transfers VALUES ($1, $2, 99, 'capture', gen_random_uuid(), $3, $4, $5, 'USD', now())"
    )
    async for connection in sessions(own):
        with pytest.raises(asyncpg.CheckViolationError, match=why):
            await connection.execute(insert, *key, debit, credit, amount)


@pytest.mark.parametrize("table", APPEND_ONLY)
async def test_rows_of_the_history_cannot_be_changed_or_removed(
    own: Own, key: tuple[UUID, UUID], table: str
) -> None:
    async for connection in sessions(own):
        assert await connection.fetchval(f"SELECT count(*) FROM {table} WHERE {THIS}", *key)
        for statement in (
            f"UPDATE {table} SET merchant_id = merchant_id",
            f"DELETE FROM {table}",
            f"TRUNCATE {table}",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)


@pytest.mark.parametrize("outcome", ["Declined", "Abandoned"])
async def test_an_order_in_another_final_state_is_never_approved(own: Own, outcome: str) -> None:
    created = await own.merchant.create()
    key = own.merchant.merchant_id, UUID(created["orderId"])
    async for connection in sessions(own):
        await connection.execute(f"UPDATE orders SET status = $3 WHERE {THIS}", *key, outcome)
        for status in {"Created", "Approved", "Declined", "Abandoned"} - {outcome}:
            with pytest.raises(asyncpg.CheckViolationError, match="stays so"):
                await connection.execute(f"UPDATE orders SET status = $3 WHERE {THIS}", *key, status)


@pytest.mark.parametrize(
    "change", ["amount = amount + 1", "amount = amount - 1", "fee = fee + 1", "number = number + 4"]
)
async def test_a_plan_that_contradicts_its_order_is_impossible(
    own: Own, key: tuple[UUID, UUID], change: str
) -> None:
    async for connection in sessions(own):
        with pytest.raises(asyncpg.CheckViolationError, match="plan of order"):
            await connection.execute(f"UPDATE installments SET {change} WHERE {THIS} AND number = 1", *key)


async def reads_of_the_law(connection: asyncpg.Connection) -> int:
    """Return how often this transaction has read the changes of plans, which only the law of plans does here."""
    return int(
        await connection.fetchval(
            "SELECT seq_scan + idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'plan_changes'"
        )
    )


@pytest.mark.plain_postgresql("on a cluster, the plan is read on the order's node")
@pytest.mark.parametrize(
    ("change", "reads"),
    [
        ("charge_at = charge_at + interval '1 day', failures = 1, remind_at = NULL", 0),
        ("amount = amount + CASE number WHEN 2 THEN 1 WHEN 3 THEN -1 ELSE 0 END", 2),
    ],
    ids=["other columns", "two amounts"],
)
async def test_the_plan_is_summed_up_only_for_a_change_of_its_amounts(
    own: Own, key: tuple[UUID, UUID], change: str, reads: int
) -> None:
    async with own.owner() as connection, connection.transaction():
        await connection.execute(f"UPDATE installments SET {change} WHERE {THIS}", *key)
        await connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        assert await reads_of_the_law(connection) == reads


async def insert_again(owner: asyncpg.Connection, key: tuple[UUID, UUID], numbers: set[int]) -> None:
    """Delete the plan's installments without any check, and insert those with these numbers as a plan is inserted."""
    await owner.execute("SET LOCAL session_replication_role = replica")
    await owner.execute(
        f"CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM installments WHERE {THIS}", *key
    )
    await owner.execute(f"DELETE FROM installments WHERE {THIS}", *key)
    await owner.execute("SET LOCAL session_replication_role = origin")
    await owner.execute("INSERT INTO installments SELECT * FROM kept WHERE number = ANY ($1)", numbers)
    await owner.execute("SET CONSTRAINTS ALL IMMEDIATE")


@pytest.mark.plain_postgresql("on a cluster, the plan is read on the order's node")
async def test_a_new_plan_is_summed_up_once(own: Own, key: tuple[UUID, UUID]) -> None:
    async with own.owner() as connection, connection.transaction():
        await insert_again(connection, key, {1, 2, 3, 4})
        assert await reads_of_the_law(connection) == 1


@pytest.mark.plain_postgresql("no distributed table can be copied into a temporary one there")
@pytest.mark.parametrize(
    "missing", [{1}, {2}, {3}, {4}, {1, 2}, {2, 3}, {3, 4}, {1, 4}, {2, 4}, {1, 2, 3}, {2, 3, 4}]
)
async def test_a_new_plan_in_which_an_installment_is_missing_is_impossible(
    own: Own, key: tuple[UUID, UUID], missing: set[int]
) -> None:
    async with own.owner() as connection:
        with pytest.raises(asyncpg.CheckViolationError, match="plan of order"):
            async with connection.transaction():
                await insert_again(connection, key, {1, 2, 3, 4} - missing)


async def test_an_approval_without_a_plan_is_impossible(own: Own) -> None:
    created = await own.merchant.create()
    async for connection in sessions(own):
        with pytest.raises(asyncpg.CheckViolationError, match="plan of order"):
            await connection.execute(
                f"UPDATE orders SET status = 'Approved' WHERE {THIS}",
                own.merchant.merchant_id,
                UUID(created["orderId"]),
            )


async def test_an_installment_cannot_be_removed_even_by_the_owner(own: Own, key: tuple[UUID, UUID]) -> None:
    async with own.owner() as connection:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(f"DELETE FROM installments WHERE {THIS} AND number = 4", *key)


async def test_money_that_was_not_paid_cannot_be_refunded_to_a_card(own: Own, key: tuple[UUID, UUID]) -> None:
    async for connection in sessions(own):
        with pytest.raises(asyncpg.CheckViolationError, match="only_paid_money_goes_back"):
            await connection.execute(
                f"UPDATE installments SET returned = 1 WHERE {THIS} AND number = 4", *key
            )


async def test_two_charges_cannot_be_pending_at_once(own: Own, key: tuple[UUID, UUID]) -> None:
    insert = """INSERT INTO charges VALUES
        ($1, $2, gen_random_uuid(), 2, 100, 'card_x', 'visa', '4242', 'pending', NULL, now())"""
    async for connection in sessions(own):
        await connection.execute("UPDATE charges SET state = 'failed' WHERE state = 'pending'")
        await connection.execute(insert, *key)
        with pytest.raises(asyncpg.UniqueViolationError, match="charges_one_at_a_time"):
            await connection.execute(insert, *key)


async def test_the_service_cannot_delete_a_row_with_money(own: Own) -> None:
    tables = (
        "orders",
        "order_details",
        "plans",
        "installments",
        "charges",
        "card_refunds",
        "merchants",
        *APPEND_ONLY,
    )
    async with own.context.pool.session() as connection:
        for table in tables:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"DELETE FROM {table}")
