"""`cuota verify` finds a single altered cent anywhere, and reports nothing if nothing is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from cuota.db.verify.recalculate import VerifyReport, verify
from support.db.every_order import make_one_of_every_kind
from support.makers import ADDRESS, Profile, complete
from support.own_service import Own

THIS = "merchant_id = $1 AND order_id = $2"


async def tamper(own: Own, *statements: str) -> VerifyReport:
    """Alter rows without triggers, like an attacker with full access to the database. Statements may drop CHECKs
    too."""
    async with own.owner() as connection:
        await connection.execute("SET session_replication_role = replica")
        for statement in statements:
            tag = await connection.execute(statement)
            assert not tag.endswith(" 0"), f"{statement} altered nothing: {tag}"
    return await verify(own.context.pool)


async def a_busy_order(own: Own) -> dict[str, Any]:
    """An order of 100.00 with a fee of 2.00, captured, refunded and voided in part, with a pending card refund. Every
    money column has a value."""
    order = await own.merchant.approved("100.00", merchantFeeForPaymentPlan="2.00")
    for operation, amount in (("capture", "60.00"), ("refund", "55.00"), ("void", "30.00")):
        assert (await own.merchant.move(order, operation, amount)).status_code == 200
    return order


LIFTED = "ALTER TABLE orders DROP CONSTRAINT no_over_capture, DROP CONSTRAINT no_over_refund, DROP CONSTRAINT fee_returned_within_fee"
CENTS = [
    ("orders", column, "true")
    for column in ("amount", "captured", "voided", "refunded", "fee", "fee_returned")
] + [
    *(("movements", "amount", f"kind = '{kind}'") for kind in ("capture", "void", "refund")),
    *(("installments", "amount", f"number = {number}") for number in (1, 2, 3, 4)),
    *(("installments", "fee", f"number = {number}") for number in (1, 4)),
    ("installments", "returned", "number = 1"),
    ("charges", "amount", "true"),
    ("card_refunds", "amount", "true"),
    *(("events", "amount", f"type = '{name}'") for name in ("order.created", "order.approved", "refund.completed")),
]  # fmt: skip


@pytest.mark.parametrize("cents", [1, -1])
@pytest.mark.parametrize(("table", "column", "which"), CENTS)
async def test_a_single_altered_cent_is_found(
    own: Own, table: str, column: str, which: str, cents: int
) -> None:
    order = await a_busy_order(own)
    assert (await verify(own.context.pool)).disagreements == []
    if cents < 0 and column in {"amount", "fee"} and table == "installments":
        lifted = "ALTER TABLE installments DROP CONSTRAINT installments_amount_check, DROP CONSTRAINT installments_fee_check"
    else:
        lifted = LIFTED
    async with own.owner() as connection:
        await connection.execute(lifted)
    report = await tamper(own, f"UPDATE {table} SET {column} = {column} + {cents} WHERE {which}")
    assert {str(found.order_id) for found in report.disagreements} == {order["orderId"]}


async def test_a_single_altered_cent_of_any_transfer_is_found(own: Own) -> None:
    order = await a_busy_order(own)
    async with own.owner() as connection:
        numbers = await connection.fetch("SELECT number FROM transfers ORDER BY number")
    assert len(numbers) > 8
    for (number,) in numbers:
        for cents in (1, -1):
            change = f"UPDATE transfers SET amount = amount + {cents} WHERE number = {number}"
            report = await tamper(own, change)
            assert {str(found.order_id) for found in report.disagreements} == {order["orderId"]}, (
                number,
                cents,
            )
            assert (await tamper(own, change.replace("+ ", "- "))).disagreements == []


@pytest.mark.parametrize("side", ["debit", "credit"])
async def test_an_altered_account_of_any_transfer_is_found(own: Own, side: str) -> None:
    await a_busy_order(own)
    async with own.owner() as connection:
        rows = await connection.fetch(f"SELECT number, {side} AS account FROM transfers ORDER BY number")
    for row in rows:
        assert (
            await tamper(own, f"UPDATE transfers SET {side} = 'losses' WHERE number = {row['number']}")
        ).disagreements, dict(row)
        await tamper(own, f"UPDATE transfers SET {side} = '{row['account']}' WHERE number = {row['number']}")


@pytest.mark.parametrize("column", ["amount", "fee"])
async def test_an_altered_cent_of_an_order_without_a_ledger_is_found(own: Own, column: str) -> None:
    await own.merchant.create("100.00")
    assert (await tamper(own, f"UPDATE orders SET {column} = {column} + 1")).disagreements


async def test_an_altered_cent_of_a_failed_charge_is_found(own: Own) -> None:
    created = await own.merchant.create("100.00")
    await complete(own.service, own.merchant.merchant_id, created, "4000 0000 0000 0002")
    assert (await verify(own.context.pool)).disagreements == []
    assert (await tamper(own, "UPDATE charges SET amount = amount + 1")).disagreements


@pytest.mark.parametrize(
    "table",
    ["transfers", "events", "movements", "installments", "charges", "card_refunds", "plans", "decisions"],
)
async def test_a_removed_row_is_found(own: Own, table: str) -> None:
    order = await a_busy_order(own)
    async with own.owner() as connection:
        rows = await connection.fetchval(f"SELECT count(*) FROM {table}")
    assert rows
    removed = f"DELETE FROM {table} WHERE ctid = (SELECT max(ctid) FROM {table})"
    assert {str(found.order_id) for found in (await tamper(own, removed)).disagreements} == {order["orderId"]}


async def test_a_ledger_row_removed_together_with_its_count_is_found(own: Own) -> None:
    await a_busy_order(own)
    report = await tamper(
        own,
        "DELETE FROM transfers WHERE number = (SELECT max(number) FROM transfers)",
        "UPDATE orders SET transfers = transfers - 1",
    )
    assert report.disagreements


@pytest.mark.parametrize(
    "change", ["installments SET due_on = due_on + 1 WHERE number = 3", "plans SET first_day = first_day - 1"]
)
async def test_a_changed_due_date_is_found(own: Own, change: str) -> None:
    await a_busy_order(own)
    assert any(
        "is due on" in found.problem for found in (await tamper(own, f"UPDATE {change}")).disagreements
    )


async def test_a_stray_transfer_of_no_order_is_found_with_its_number(own: Own) -> None:
    stray = """INSERT INTO transfers VALUES (gen_random_uuid(), gen_random_uuid(), 7, 'capture', gen_random_uuid(),
        'authorized_uncaptured', 'merchant_payable', 1, 'USD', now())"""
    report = await tamper(own, stray)
    assert [(found.row, found.problem) for found in report.disagreements] == [
        ("transfers 7", "belongs to no order")
    ]


@pytest.mark.parametrize(
    ("posting", "cause", "debit", "credit"),
    [
        ("capture", "gen_random_uuid()", "authorized_uncaptured", "merchant_payable"),
        ("payout", "gen_random_uuid()", "consumer_receivable", "bank_clearing"),
        ("authorization", "gen_random_uuid()", "losses", "late_fees"),
        ("gift", "(SELECT max(movement_id::text)::uuid FROM movements)", "losses", "late_fees"),
    ],
)
async def test_an_added_transfer_is_found_even_if_the_order_s_counter_includes_it(
    own: Own, posting: str, cause: str, debit: str, credit: str
) -> None:
    await a_busy_order(own)
    report = await tamper(
        own,
        "UPDATE orders SET transfers = transfers + 1",
        f"""INSERT INTO transfers SELECT merchant_id, order_id, transfers, '{posting}', {cause}, '{debit}', '{credit}',
            1, 'USD', now() FROM orders""",
    )
    assert report.disagreements


async def test_without_any_alteration_verify_finds_nothing(own: Own) -> None:
    kinds = await make_one_of_every_kind(own)
    report = await verify(own.context.pool)
    assert report.disagreements == []
    assert report.orders == kinds
    assert report.transfers > kinds


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE plans SET agreement = replace(agreement, '\"USD\"', '\"CAD\"')", "plans.agreement"),
        ("DELETE FROM order_details", "order_details"),
        ("UPDATE decisions SET approved = false", "decisions"),
        ("UPDATE decisions SET inputs = jsonb_set(inputs::jsonb, '{amount}', '1')::json", "decisions 1"),
        ("UPDATE decisions SET inputs = replace(inputs::text, 'USD', 'CAD')::json", "decisions 1"),
        ("UPDATE decisions SET inputs_hash = NULL", "decisions 1"),
        ("DELETE FROM decisions", "decisions"),
    ],
)
async def test_altered_words_and_missing_details_are_found(own: Own, change: str, named: str) -> None:
    await a_busy_order(own)
    report = await tamper(own, change)
    assert named in {found.row for found in report.disagreements}


@pytest.mark.parametrize(
    "change", ["UPDATE decisions SET approved = true", "UPDATE orders SET status = 'Created'"]
)
async def test_a_decline_that_was_altered_is_found(own: Own, change: str) -> None:
    declined = Profile("Jordan", "Declinetest", "jordan@mail.example", ADDRESS)
    await complete(own.service, own.merchant.merchant_id, await own.merchant.create(), profile=declined)
    assert (await verify(own.context.pool)).disagreements == []
    assert "decisions" in {found.row for found in (await tamper(own, change)).disagreements}


async def test_an_order_whose_next_charge_time_is_missing_is_found(own: Own) -> None:
    order = await own.merchant.approved("100.00")
    report = await tamper(own, "UPDATE orders SET collect_at = NULL WHERE collect_at IS NOT NULL")
    assert [(str(found.order_id), found.row) for found in report.disagreements] == [
        (order["orderId"], "orders.collect_at")
    ]


async def test_an_agreement_that_nobody_can_read_does_not_stop_the_check_of_other_orders(own: Own) -> None:
    order = await own.merchant.approved("100.00")
    other = await own.merchant.approved("100.00")
    report = await tamper(
        own,
        f"UPDATE plans SET agreement = repeat('[', 3000) WHERE order_id = '{order['orderId']}'",
        f"UPDATE orders SET captured = captured + 1 WHERE order_id = '{other['orderId']}'",
    )
    assert {str(found.order_id) for found in report.disagreements} == {order["orderId"], other["orderId"]}
