"""Moving the clock triggers the events of the simulated processor: a dispute after a week, a renewed card after three
weeks."""

from __future__ import annotations

from datetime import timedelta

from cuota.db.plan import rail_figures
from support.makers import complete
from support.time.sandbox import Sandbox


async def test_a_payment_with_the_disputed_test_card_is_disputed_once_after_a_week(sandbox: Sandbox) -> None:
    order = await sandbox.merchant.create("100.00")
    await complete(sandbox.service, sandbox.merchant.merchant_id, order, card="4000 0000 0000 2685")
    await sandbox.advance("6d")
    assert await rail_figures.open_disputes(sandbox.context.pool, 10) == []
    await sandbox.advance("2d")
    (found,) = await rail_figures.open_disputes(sandbox.context.pool, 10)
    assert (str(found.order_id), found.amount, found.kind) == (order["orderId"], 2500, "dispute.opened")
    assert (found.rail, found.status) == ("sandbox", "needs_response")
    await sandbox.advance("3d")
    assert await rail_figures.open_disputes(sandbox.context.pool, 10) == [found]
    seen = (
        await rail_figures.figures(sandbox.context.pool, "sandbox", await sandbox.now(), await sandbox.now())
    )["sandbox"]
    assert (seen.events_waiting, seen.problem) == (0, None)
    assert seen.reconciled_until is not None
    assert abs(await sandbox.now() - seen.reconciled_until) < timedelta(hours=1)


async def test_the_renewed_test_card_has_its_new_digits_after_three_weeks(sandbox: Sandbox) -> None:
    order = await sandbox.merchant.create("100.00")
    await complete(sandbox.service, sandbox.merchant.merchant_id, order, card="4000 0000 0000 4004")
    assert (await sandbox.merchant.move(order, "capture", "100.00")).status_code == 200
    await sandbox.advance("43d")
    paid = await sandbox.fetch("SELECT card_last4 FROM charges ORDER BY created_at")
    assert [row["card_last4"] for row in paid] == ["4004", "4004", "4444", "4444"]
