"""`cuota verify` finds a wrong or missing write-off, reversal or recovery, to the cent."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest

from cuota.core.checkout.card import read_card
from cuota.db.verify.recalculate import VerifyReport, verify
from cuota.flows.plan.limit_asks import Asker
from cuota.flows.plan.manage_plan import change_card, find_plan, pay_early
from cuota.flows.plan.write_off_installments import write_off_installments
from cuota.work.due_orders import settle_due_orders
from support.card import token_of
from support.flows.collecting import agreed, set_clock
from support.makers import complete
from support.own_service import Own

NAMES = ("write_off", "write_off_reversed", "recovery")
TABLES = ("transfers", "installments", "orders")


async def an_order_with_all_of_them(own: Own) -> str:
    """An order whose installments 2 to 4 were written off. Then a refund reduced 4 and 3, and the consumer paid 2 after
    all."""
    created = await own.auto_merchant.create("100.00")
    merchant_id, order_id = own.auto_merchant.merchant_id, UUID(created["orderId"])
    await complete(own.service, merchant_id, created, "4000 0000 0000 0341")
    while (at := (await agreed(own, order_id)).found.order.collect_at) is not None:
        set_clock(own, at)
        await settle_due_orders(own.context)
    own.service.clock.ahead += timedelta(days=200)
    assert await write_off_installments(own.context) == 1
    assert (await own.auto_merchant.move({"orderId": order_id}, "refund", "30.00")).status_code == 200
    asker = Asker("2125550187")
    for pays in (False, True):
        async with own.owner() as owner:
            consumer = await owner.fetchval("SELECT consumer_id FROM plans WHERE order_id = $1", order_id)
        detail = await find_plan(own.context, consumer, merchant_id, order_id)
        assert detail is not None
        card = read_card("4242 4242 4242 4242", "12/39", "123", own.context.now().date())
        if pays:
            await pay_early(own.context, detail, [2], 2500, asker)
        else:
            await change_card(own.context, detail, await token_of(own.context, card), 0, asker)
    assert (await verify(own.context.pool)).disagreements == []
    return str(order_id)


async def tamper(own: Own, *changes: str) -> VerifyReport:
    """Change rows with every trigger off, as only the tables' owner can."""
    async with own.owner() as owner:
        for table in TABLES:
            await owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        for change in changes:
            assert await owner.execute(change) != "UPDATE 0", change
        for table in TABLES:
            await owner.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    return await verify(own.context.pool)


def named(report: VerifyReport) -> Iterator[str]:
    return (f"{found.row}: {found.problem}" for found in report.disagreements)


@pytest.mark.parametrize("cents", [1, -1])
async def test_one_altered_cent_of_each_posting_is_found_and_named(own: Own, cents: int) -> None:
    order_id = await an_order_with_all_of_them(own)
    async with own.owner() as owner:
        rows = await owner.fetch(
            "SELECT number, posting, amount FROM transfers WHERE posting = ANY ($1) ORDER BY number", NAMES
        )
    assert [tuple(row)[1:] for row in rows] == [
        *[("write_off", 2500)] * 3, ("write_off_reversed", 3000), ("recovery", 2500)
    ]  # fmt: skip
    for number, posting, amount in rows:
        report = await tamper(own, f"UPDATE transfers SET amount = {amount + cents} WHERE number = {number}")
        assert {str(found.order_id) for found in report.disagreements} == {order_id}
        said = f"is {amount + cents}, the plan says {amount}"
        assert any(f"transfers {posting} " in line and said in line for line in named(report)), posting
        back = await tamper(own, f"UPDATE transfers SET amount = {amount} WHERE number = {number}")
        assert back.disagreements == []


async def test_a_posting_under_another_name_is_found(own: Own) -> None:
    await an_order_with_all_of_them(own)
    for name in NAMES:
        for other in ("overpaid", *NAMES):
            if other != name:
                change = "UPDATE transfers SET posting = '{}' WHERE posting = '{}'"
                async with own.owner() as owner:
                    numbers = [row[0] for row in await owner.fetch(
                        "SELECT number FROM transfers WHERE posting = $1", name)]  # fmt: skip
                assert (await tamper(own, change.format(other, name))).disagreements, (name, other)
                listed = ", ".join(map(str, numbers))
                back = f"UPDATE transfers SET posting = '{name}' WHERE number IN ({listed})"
                assert (await tamper(own, back)).disagreements == []


@pytest.mark.parametrize("number", [2, 3, 4])
async def test_a_mark_that_is_missing_is_found(own: Own, number: int) -> None:
    await an_order_with_all_of_them(own)
    change = f"UPDATE installments SET written_off_at = NULL WHERE number = {number}"
    assert (await tamper(own, change)).disagreements


async def test_a_mark_without_a_posting_is_found(own: Own) -> None:
    created = await own.auto_merchant.create("100.00")
    await complete(own.service, own.auto_merchant.merchant_id, created)
    mark = "UPDATE installments SET written_off_at = now() + interval '1 year', failures = 1, charge_at = NULL, remind_at = NULL WHERE number = 3"
    assert any(
        "installments 3: is written off, but the ledger posts no write-off" in line
        for line in named(await tamper(own, mark, "UPDATE orders SET version = version"))
    )


async def test_a_write_off_before_its_day_is_found(own: Own) -> None:
    await an_order_with_all_of_them(own)
    early = "UPDATE installments SET written_off_at = due_on WHERE number = 2"
    assert any("was written off on" in line for line in named(await tamper(own, early)))
