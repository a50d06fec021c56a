"""`cuota verify` finds one altered cent, day or text of a plan that was changed in hardship; the database refuses most of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from cuota.core.plan.hardship import HardshipRequest, MoveDates, PausePlan, SmallerPayments, WaiveFee
from cuota.db.verify.recalculate import VerifyReport, verify
from cuota.flows.plan.change_plan import agree_on_change, preview_change
from support.flows.collecting import agreed
from support.own_service import Own

TABLES = ("transfers", "installments", "orders", "plan_changes")


async def change(own: Own, order_id: UUID, request: HardshipRequest) -> None:
    ids = own.auto_merchant.merchant_id, order_id
    mark = (await preview_change(own.context, *ids, request)).found.before.mark
    await agree_on_change(own.context, *ids, request, by="Ana", reason="called", mark=mark)


async def changed_order(own: Own) -> UUID:
    """An order of 100.00 with a fee of 8.00 whose plan was changed in all four ways, with a refund between them."""
    created = await own.auto_merchant.approved("100.00", merchantFeeForPaymentPlan="8.00")
    order_id = UUID(created["orderId"])
    first = (await agreed(own, order_id)).plan[1].due_on
    await change(own, order_id, SmallerPayments(6, 14, first))
    assert (await own.auto_merchant.move(created, "refund", "20.00")).status_code == 200
    await change(own, order_id, PausePlan(10))
    await change(own, order_id, WaiveFee(100))
    last = (await agreed(own, order_id)).plan[5]
    await change(own, order_id, MoveDates({6: last.due_on + timedelta(days=5)}))
    assert (await verify(own.context.pool)).disagreements == []
    return order_id


async def tamper(own: Own, sql: str) -> VerifyReport:
    """Change rows as nobody but the tables' owner can, with every trigger off."""
    async with own.owner() as owner:
        for table in TABLES:
            await owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        assert await owner.execute(sql) not in {"UPDATE 0", "DELETE 0"}, sql
        for table in TABLES:
            await owner.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    return await verify(own.context.pool)


def named(report: VerifyReport) -> Iterator[str]:
    return (found.row for found in report.disagreements)


FORGED = {
    "a cent from one payment to another": (
        "UPDATE installments SET amount = amount + CASE number WHEN 3 THEN 1 ELSE -1 END WHERE number IN (3, 5)", "installments 3",
    ),
    "a cent of the fee": (
        "UPDATE installments SET fee = fee + CASE number WHEN 2 THEN 1 ELSE -1 END WHERE number IN (2, 3)", "installments 2",
    ),
    "a later day": ("UPDATE installments SET due_on = due_on + 1 WHERE number = 5", "installments 5"),
    "an earlier day": ("UPDATE installments SET due_on = due_on - 1 WHERE number = 5", "installments 5"),
    "the waived cents": ("UPDATE plan_changes SET waived = waived + 1 WHERE kind = 'fee_waived'", "plan_changes 3"),
    "the days of a pause": ("UPDATE plan_changes SET days = days + 90 WHERE kind = 'paused'", "plan_changes 2"),
    "the days of a move": ("UPDATE plan_changes SET days = days + 1 WHERE kind = 'dates_moved'", "plan_changes 4"),
    "the text": ("UPDATE plan_changes SET text = text || '.' WHERE number = 1", "plan_changes 1"),
    "the hash": ("UPDATE plan_changes SET text_hash = md5('x') WHERE number = 2", "plan_changes 2"),
    "the plan before": (
        "UPDATE plan_changes SET before = jsonb_set(before::jsonb, '{2,2}', '1')::json WHERE number = 2", "plan_changes 2",
    ),
    "a day before": (
        "UPDATE plan_changes SET before = jsonb_set(before::jsonb, '{2,1}', '\"2020-01-01\"')::json WHERE number = 2", "plan_changes 2",
    ),
    "the plan after": (
        "UPDATE plan_changes SET after = jsonb_set(after::jsonb, '{3,2}', '1')::json WHERE number = 4", "plan_changes 4",
    ),
    "a change that is gone": ("DELETE FROM plan_changes WHERE number = 4", "installments 6"),
    "the first change that is gone": ("DELETE FROM plan_changes WHERE number = 1", "plan_changes 2"),
    "what counts for the consumer": ("UPDATE consumer_waivers SET amount = amount - 1", "consumer_waivers"),
    "the ledger row of the waiver": (
        "UPDATE transfers SET amount = amount + 1 WHERE posting = 'fee_waived'", "plan_changes 3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", list(FORGED))
async def test_what_was_altered_is_named(own: Own, what: str) -> None:
    order_id = await changed_order(own)
    sql, row = FORGED[what]
    report = await tamper(own, sql)
    assert {found.order_id for found in report.disagreements} == {order_id}
    assert any(each.startswith(row) for each in named(report)), list(named(report))


INSERT = """INSERT INTO plan_changes SELECT merchant_id, order_id, 5, gen_random_uuid(), {kind}, changed_at, changed_by, {numbers}, 7,
    transfers, {plans}, reason, text, text_hash, message_id FROM plan_changes WHERE number = {number}"""
EXTRA = """INSERT INTO installments (merchant_id, order_id, number, due_on, amount, fee)
    SELECT merchant_id, order_id, 41, due_on, 0, 0 FROM installments WHERE number = 1"""
REFUSED = {
    "other cents": ("UPDATE installments SET amount = amount + 1 WHERE number = 3", "sums to"),
    "an installment less": ("DELETE FROM installments WHERE number = 7", "not 7"),
    "a change that is rewritten": ("UPDATE plan_changes SET days = 1", "stays as it was agreed"),
    "another text": ("UPDATE plan_changes SET text = 'You owe nothing.'", "stays as it was agreed"),
    "a change less": ("DELETE FROM plan_changes", "stays as it was agreed"),
    "an installment with a number of its own": (EXTRA, "installments_number_check"),
    "a change that does not say what the plan is": (
        INSERT.format(kind="'paused'", numbers="7, 0", plans="before, before", number=2),
        "says that the plan",
    ),
    "a waiver that the ledger does not post": (
        INSERT.format(kind="'fee_waived'", numbers="0, 1", plans="after, after", number=4),
        "the ledger says",
    ),
}


@pytest.mark.parametrize("what", list(REFUSED))
async def test_the_database_itself_refuses(own: Own, what: str) -> None:
    await changed_order(own)
    sql, words = REFUSED[what]
    async with own.owner() as owner:
        with pytest.raises(asyncpg.PostgresError, match=words):
            await owner.execute(sql)
    assert (await verify(own.context.pool)).disagreements == []
