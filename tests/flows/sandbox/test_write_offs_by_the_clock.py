"""While the sandbox's clock moves, each installment is written off at its own time, even if nothing else is due
then."""

from __future__ import annotations

from datetime import time

from cuota.db.sandbox import clock
from cuota.db.verify.recalculate import verify
from support.makers import complete
from support.time.sandbox import Sandbox

LEFT = (
    "SELECT number, due_on, written_off_at FROM installments WHERE written_off_at IS NOT NULL ORDER BY number"
)


async def test_during_one_long_advance_each_installment_is_written_off_at_noon_of_its_day(
    sandbox: Sandbox,
) -> None:
    created = await sandbox.merchant.create("100.00")
    order = {"orderId": created["orderId"]}
    await complete(sandbox.service, sandbox.merchant.merchant_id, created, "4000 0000 0000 0341")
    assert (await sandbox.merchant.move(order, "capture", "100.00")).status_code == 200
    moved = await sandbox.advance("100d")
    assert moved.done.jobs["write_offs"] == 0
    async with clock.connected(sandbox.where) as connection:
        waiting = await clock.next_of_each(connection, moved.after, 120)
    assert [each.rows for each in waiting if each.table == "installments"] == [1]
    moved = await sandbox.advance("100d")
    assert moved.done.jobs["write_offs"] == 3
    rows = await sandbox.fetch(LEFT)
    assert [row["number"] for row in rows] == [2, 3, 4]
    for row in rows:
        at = row["written_off_at"]
        assert ((at.date() - row["due_on"]).days, at.timetz().replace(tzinfo=None)) == (120, time(12))
    assert (await verify(sandbox.context.pool)).disagreements == []
