"""`cuota verify` finds one altered cent, and every removed or added row, in lines, payouts, reserves and their ledger."""

from __future__ import annotations

import pytest

from cuota.db.verify import settlements
from cuota.db.verify.recalculate import VerifyReport, verify
from support.db.busy_merchant import a_busy_merchant
from support.db.settled import rows
from support.own_service import Own

LIFTED = """ALTER TABLE settlement_lines DROP CONSTRAINT net_is_the_sum; ALTER TABLE payouts DROP CONSTRAINT whole_range;
    ALTER TABLE settlements DROP CONSTRAINT closed_lines_exist; ALTER TABLE merchant_transfers DROP CONSTRAINT two_sides"""
# Each money column and each column that assigns the money, with the changes that the test makes.
ALTERED = {
    "settlement_lines": {
        "type": ("CASE type WHEN 'capture' THEN 'refund' ELSE 'capture' END",),
        "cause": ("gen_random_uuid()",),
        "order_id": ("gen_random_uuid()",),
        "gross": ("gross + 1", "gross - 1"),
        "fee": ("fee + 1", "fee - 1"),
        "net": ("net + 1", "net - 1"),
        "currency": ("'CAD'",),
        "at": ("at + interval '1 second'",),
        "sequence": ("coalesce(sequence, 0) + 1",),
        "number": ("number + 1000",),
    },
    "merchant_transfers": {
        "number": ("number + 1000",),
        "posting": ("CASE posting WHEN 'payout' THEN 'adjustment' ELSE 'payout' END",),
        "cause": ("gen_random_uuid()",),
        "debit": ("'bank_clearing'",),
        "credit": ("'bank_clearing'",),
        "amount": ("amount + 1", "amount - 1"),
        "created_at": ("created_at + interval '1 second'",),
    },
    "payouts": {
        "payout_id": ("gen_random_uuid()",),
        "number": ("number + 1000",),
        "status": ("'paid'", "'returned'"),
        "amount": ("amount + 1", "amount - 1"),
        "currency": ("'CAD'",),
        "first_line": ("first_line + 1",),
        "last_line": ("last_line + 1", "last_line - 1"),
        "account_id": ("gen_random_uuid()",),
        "closed_at": ("closed_at + interval '1 second'",),
        "events": ("events + 1", "events - 1"),
    },
    "reserves": {
        "reserve_id": ("gen_random_uuid()",),
        "amount": ("amount + 1", "amount - 1"),
        "held_at": ("held_at + interval '1 second'",),
        "released_at": ("CASE WHEN released_at IS NULL THEN held_at END",),
    },
    "settlements": {
        name: (f"{name} + 1", f"{name} - 1")
        for name in ("position", "lines", "closed", "transfers", "payouts", "open_net", "open_moved", "carried", "reserved")
    } | {"carried_line": ("carried_line - 1",), "close_at": ("closed_until",)},
}  # fmt: skip


async def checked(own: Own, *changes: str) -> VerifyReport:
    """Alter rows without triggers, as only the database's owner can, and verify."""
    async with own.owner() as connection:
        await connection.execute("SET session_replication_role = replica")
        for change in changes:
            assert not (await connection.execute(change)).endswith(" 0"), change
    return await verify(own.context.pool)


async def only_busy_merchants(own: Own) -> None:
    """Remove the rows of merchants that only have their test account, because these rows have nothing to alter."""
    async with own.owner() as connection:
        await connection.execute("DELETE FROM settlements WHERE lines = 0 AND transfers = 0")


@pytest.mark.parametrize("table", ALTERED)
async def test_every_altered_column_of_every_row_is_found(own: Own, table: str) -> None:
    await a_busy_merchant(own)
    await only_busy_merchants(own)
    assert (await verify(own.context.pool)).disagreements == []
    async with own.owner() as connection:
        await connection.execute(LIFTED)
    kept = await rows(own, f"SELECT ctid::text FROM {table}")
    await checked(own, f"CREATE TABLE kept AS SELECT * FROM {table}")
    for number in range(len(kept)):
        for column, changes in ALTERED[table].items():
            for change in changes:
                which = f"ctid = (SELECT ctid FROM {table} ORDER BY {table}::text OFFSET {number} LIMIT 1)"
                report = await checked(own, f"UPDATE {table} SET {column} = {change} WHERE {which}")
                assert report.disagreements, f"{table}.{column} = {change} in row {number} was not found"
                await checked(own, f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM kept")
    assert (await verify(own.context.pool)).disagreements == []


async def test_the_report_names_the_row_and_both_amounts(own: Own) -> None:
    await a_busy_merchant(own)
    report = await checked(
        own,
        "UPDATE settlement_lines SET gross = gross + 1, net = net + 1 WHERE number = 1",
        "UPDATE payouts SET amount = amount + 1 WHERE number = 2",
        "UPDATE merchant_transfers SET amount = amount + 1 WHERE posting = 'adjustment'",
    )
    found = {(each.row, each.problem) for each in report.disagreements}
    assert ("settlement_lines 1", "net is 10001, the ledger says 10000") in found
    # 30.00 minus a reserve of 3.00, plus the first reserve of 8.00, which is released.
    assert ("payouts 2", "is 3501, its 3 lines sum to 3500") in found
    assert ("payouts 2", "is 3501, the ledger says 3500") in found
    assert any(row.startswith("merchant_transfers") and "-151" in problem for row, problem in found)


@pytest.mark.parametrize("table", ALTERED)
async def test_a_removed_row_is_found(own: Own, table: str) -> None:
    await a_busy_merchant(own)
    await only_busy_merchants(own)
    removed = f"DELETE FROM {table} WHERE ctid = (SELECT min(ctid) FROM {table})"
    assert (await checked(own, removed)).disagreements


async def test_an_added_line_is_found_even_if_the_merchant_s_counters_include_it(own: Own) -> None:
    await a_busy_merchant(own)
    report = await checked(
        own,
        "UPDATE settlements SET lines = lines + 1, open_net = open_net + 5, open_moved = open_moved + 5",
        """INSERT INTO settlement_lines SELECT merchant_id, number + 1, 'capture', gen_random_uuid(), order_id, 'x', 5, 0, 5,
            currency, at, sequence FROM settlement_lines ORDER BY number DESC LIMIT 1""",
    )
    assert any("no row of the ledger" in each.problem for each in report.disagreements)


async def test_an_altered_capture_of_the_ledger_disagrees_with_its_line(own: Own) -> None:
    merchant = await a_busy_merchant(own)
    report = await checked(own, "UPDATE transfers SET amount = amount + 1 WHERE posting = 'capture'")
    assert any(
        each.merchant_id == merchant and each.row.startswith("settlement_lines")
        for each in report.disagreements
    )


async def test_the_lines_of_all_batches_are_checked(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settlements, "BATCH", 2)
    await a_busy_merchant(own)
    assert (await verify(own.context.pool)).disagreements == []
    report = await checked(
        own, "UPDATE settlement_lines SET gross = gross + 1, net = net + 1 WHERE number = 9"
    )
    assert {each.row for each in report.disagreements} >= {"settlement_lines 9"}
