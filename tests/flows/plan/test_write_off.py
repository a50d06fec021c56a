"""An installment that stays unpaid for 120 days is written off once. The ledger is also right after later refunds,
voids and payments."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from uuid import UUID

import asyncpg
import pytest

from cuota.core.checkout.card import read_card
from cuota.core.order.outcome import Outcome
from cuota.db.order.outcomes import Answer
from cuota.db.payout.books import balances
from cuota.db.plan import write_offs
from cuota.db.plan.accounts import PlanDetail
from cuota.db.session import Session
from cuota.db.verify.recalculate import verify
from cuota.flows.context import Context
from cuota.flows.plan.limit_asks import Asker
from cuota.flows.plan.manage_plan import change_card, find_plan, pay_early
from cuota.flows.plan.write_off_installments import write_off_installments
from cuota.flows.risk.explain_order import explain_plan
from cuota.work.due_orders import settle_due_orders
from support.card import token_of
from support.flows.collecting import agreed, charged, set_clock
from support.flows.due import settle_all_due
from support.makers import complete
from support.own_service import Own

FAILS_LATER = "4000 0000 0000 0341"
ASKER = Asker("2125550187")
POSTED = "SELECT posting, debit, credit, amount FROM transfers WHERE posting = ANY ($1) ORDER BY number"
NAMES = ["write_off", "write_off_reversed", "recovery"]


async def overdue_order(own: Own, card: str = FAILS_LATER) -> UUID:
    """Make an order of 100.00 whose first installment is paid, and whose others fail until no retry is left."""
    created = await own.auto_merchant.create("100.00")
    await complete(own.service, own.auto_merchant.merchant_id, created, card)
    order_id = UUID(created["orderId"])
    while (at := (await agreed(own, order_id)).found.order.collect_at) is not None:
        set_clock(own, at)
        await settle_due_orders(own.context)
    return order_id


async def day_of(own: Own, order_id: UUID, number: int, days: int = 120) -> datetime:
    """Return when an installment is written off: at noon UTC."""
    due_on = (await agreed(own, order_id)).found.plan[number - 1].due_on
    return datetime.combine(due_on + timedelta(days=days), time(12), UTC)


async def written_off(own: Own, *, up_to: int = 2) -> UUID:
    """Make an overdue order whose installments up to this one are written off."""
    order_id = await overdue_order(own)
    set_clock(own, await day_of(own, order_id, up_to))
    assert await write_off_installments(own.context) == 1
    return order_id


async def states(own: Own, order_id: UUID) -> list[str]:
    return [item.state for item in (await agreed(own, order_id)).found.plan]


async def posted(own: Own) -> list[tuple[str, str, str, int]]:
    async with own.owner() as owner:
        return [tuple(row) for row in await owner.fetch(POSTED, NAMES)]


async def in_books(own: Own) -> dict[str, int]:
    """Check that the trial balance closes and `cuota verify` finds nothing; return the balances of the two accounts."""
    found = await balances(own.context.pool, own.service.clock.now() + timedelta(days=1))
    assert sum(each.balance for each in found) == 0
    assert (await verify(own.context.pool)).disagreements == []
    return {
        each.account.value: each.balance
        for each in found
        if each.account.value in {"consumer_receivable", "losses"}
    }


async def paying_card(own: Own) -> str:
    return await token_of(
        own.context, read_card("4242 4242 4242 4242", "12/39", "123", own.context.now().date())
    )


async def detail_of(own: Own, order_id: UUID) -> PlanDetail:
    async with own.owner() as owner:
        consumer = await owner.fetchval("SELECT consumer_id FROM plans WHERE order_id = $1", order_id)
    found = await find_plan(own.context, consumer, own.auto_merchant.merchant_id, order_id)
    assert found is not None
    return found


async def test_an_installment_is_written_off_on_its_day_and_not_before(own: Own) -> None:
    order_id = await overdue_order(own)
    at = await day_of(own, order_id, 2)
    set_clock(own, at - timedelta(seconds=30))
    assert await write_off_installments(own.context) == 0
    assert await states(own, order_id) == ["paid", "overdue", "overdue", "overdue"]
    assert await in_books(own) == {"consumer_receivable": 7500, "losses": 0}
    set_clock(own, at)
    assert await write_off_installments(own.context) == 1
    assert await states(own, order_id) == ["paid", "written_off", "overdue", "overdue"]
    assert await posted(own) == [("write_off", "losses", "consumer_receivable", 2500)]
    assert await in_books(own) == {"consumer_receivable": 5000, "losses": 2500}


async def test_a_setting_says_after_how_many_days_an_installment_is_written_off(own: Own) -> None:
    order_id = await overdue_order(own)
    set_clock(own, await day_of(own, order_id, 2, days=100))
    assert await write_off_installments(own.context) == 0
    settings = replace(own.context.settings, write_off_days=100)
    assert await write_off_installments(replace(own.context, settings=settings)) == 1
    assert (await states(own, order_id))[1] == "written_off"


async def test_an_installment_is_written_off_once_however_often_the_job_runs(own: Own) -> None:
    order_id = await overdue_order(own)
    set_clock(own, await day_of(own, order_id, 4))
    done = await asyncio.gather(*(write_off_installments(own.context) for _ in range(8)))
    assert sum(done) == 1
    assert await write_off_installments(own.context) == 0
    assert await posted(own) == [("write_off", "losses", "consumer_receivable", 2500)] * 3
    assert await states(own, order_id) == ["paid", *["written_off"] * 3]
    assert await in_books(own) == {"consumer_receivable": 0, "losses": 7500}


async def test_a_paid_plan_and_a_plan_that_is_not_due_are_not_written_off(own: Own) -> None:
    created = await own.auto_merchant.create("100.00")
    await complete(own.service, own.auto_merchant.merchant_id, created)
    own.service.clock.ahead += timedelta(days=400)
    assert await write_off_installments(own.context) == 0
    # Payments that were missed for so long are announced, and then charged a week apart.
    for _ in range(20):
        await settle_all_due(own.context)
        own.service.clock.ahead += timedelta(days=1)
    assert await write_off_installments(own.context) == 0
    assert await states(own, UUID(created["orderId"])) == ["paid"] * 4


async def test_a_written_off_installment_has_no_charge_and_no_reminder(own: Own) -> None:
    order_id = await written_off(own, up_to=4)
    before = await charged(own)
    own.service.clock.ahead += timedelta(days=60)
    assert await settle_due_orders(own.context) == 0
    assert await charged(own) == before
    order = (await agreed(own, order_id)).found.order
    assert (order.collect_at, order.due_at) == (None, None)


@pytest.mark.parametrize(
    ("amount", "state", "lost", "owed"),
    [("40.00", "written_off", 2500, 1000), ("60.00", "written_off", 1500, 0), ("100.00", "cancelled", 0, 0)],
)
async def test_a_refund_of_a_written_off_installment_reduces_the_losses(
    own: Own, amount: str, state: str, lost: int, owed: int
) -> None:
    order_id = await written_off(own)
    assert (await own.auto_merchant.move({"orderId": order_id}, "refund", amount)).status_code == 200
    assert (await states(own, order_id))[1] == state
    assert await in_books(own) == {"consumer_receivable": owed, "losses": lost}
    back = [("write_off_reversed", "consumer_receivable", "losses", 2500 - lost)] if lost < 2500 else []
    assert (await posted(own))[1:] == back


async def test_a_dry_run_of_a_refund_shows_the_state_written_off(own: Own) -> None:
    order_id = await written_off(own)
    answer = await own.auto_merchant.http.post(
        f"/order/{order_id}/refund?dryRun=true", json={"amount": "60.00", "merchantReference": "x"}
    )
    before, after = (answer.json()[name]["plan"][1] for name in ("before", "after"))
    assert (before["state"], before["amount"], after["state"], after["amount"]) == (
        "written_off", 25.00, "written_off", 15.00
    )  # fmt: skip
    assert await in_books(own) == {"consumer_receivable": 5000, "losses": 2500}


async def test_a_void_of_a_written_off_installment_reduces_the_losses(own: Own) -> None:
    created = await own.merchant.create("100.00")
    await complete(own.service, own.merchant.merchant_id, created, FAILS_LATER)
    order_id = UUID(created["orderId"])
    async with own.owner() as owner:
        # Simulate an authorization with the longest time, and an early write-off.
        await owner.execute(
            "UPDATE orders SET authorization_expires_at = authorization_expires_at + interval '77 days'"
        )
        due_on = await owner.fetchval("SELECT due_on FROM installments WHERE number = 2")
    at = datetime.combine(due_on, time(12), UTC)
    set_clock(own, at)
    for _ in range(23):
        await settle_all_due(own.context)
        own.service.clock.ahead += timedelta(days=2)
    early: Context = replace(own.context, settings=replace(own.context.settings, write_off_days=30))
    assert await write_off_installments(early) == 1
    assert await in_books(own) == {"consumer_receivable": 2500, "losses": 5000}
    assert (await own.merchant.move({"orderId": order_id}, "void", "40.00")).status_code == 200
    assert (await posted(own))[2:] == [("write_off_reversed", "consumer_receivable", "losses", 1500)]
    assert await in_books(own) == {"consumer_receivable": 0, "losses": 3500}


async def test_a_later_payment_by_the_consumer_is_a_recovery(own: Own) -> None:
    order_id = await written_off(own)
    detail = await detail_of(own, order_id)
    await change_card(own.context, detail, await paying_card(own), 5000, ASKER)
    assert await states(own, order_id) == ["paid", "written_off", "paid", "paid"]
    await pay_early(own.context, await detail_of(own, order_id), [2], 2500, ASKER)
    assert await states(own, order_id) == ["paid"] * 4
    assert (await posted(own))[1:] == [("recovery", "consumer_receivable", "losses", 2500)]
    assert await in_books(own) == {"consumer_receivable": 0, "losses": 0}
    assert (await agreed(own, order_id)).found.plan[1].written_off_at is not None
    assert (await own.auto_merchant.move({"orderId": order_id}, "refund", "100.00")).status_code == 200
    assert await in_books(own) == {"consumer_receivable": 0, "losses": 0}


async def test_a_new_card_is_not_charged_for_a_written_off_installment(own: Own) -> None:
    order_id = await written_off(own, up_to=4)
    await change_card(own.context, await detail_of(own, order_id), await paying_card(own), 0, ASKER)
    own.service.clock.ahead += timedelta(days=30)
    await settle_due_orders(own.context)
    assert await states(own, order_id) == ["paid", *["written_off"] * 3]
    assert await in_books(own) == {"consumer_receivable": 0, "losses": 7500}


async def test_the_operator_sees_when_it_was_written_off(own: Own) -> None:
    order_id = await written_off(own)
    found = await explain_plan(own.context, order_id)
    text = "\n".join(found.lines)
    assert "written off on" in text
    assert "the consumer can still pay it" in text


async def test_the_database_refuses_a_change_of_a_written_off_installment_without_its_posting(
    own: Own,
) -> None:
    """Write like a release that has no write-offs."""
    order_id = await written_off(own)
    async with own.owner() as owner:
        for change in ("charge_id = gen_random_uuid()", "written_off_at = NULL"):
            with pytest.raises(asyncpg.CheckViolationError, match="losses of 2500"):
                await owner.execute(
                    f"UPDATE installments SET {change} WHERE order_id = $1 AND number = 2", order_id
                )
        with pytest.raises(asyncpg.CheckViolationError):
            await owner.execute(
                "UPDATE installments SET charge_at = now() WHERE order_id = $1 AND number = 2", order_id
            )


async def test_one_order_that_cannot_be_saved_does_not_stop_the_others(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await overdue_order(own), await overdue_order(own)
    set_clock(own, await day_of(own, second, 2))
    save = write_offs.save

    async def broken(session: Session, outcome: Outcome, answer: Answer | None) -> bool:
        if outcome.order.order_id == first:
            raise ValueError("this order is broken")
        return await save(session, outcome, answer)

    monkeypatch.setattr(write_offs, "save", broken)
    assert await write_off_installments(own.context) == 1
    monkeypatch.undo()
    assert (await states(own, first))[1] == "overdue"
    assert await write_off_installments(own.context) == 1
    assert (await states(own, first))[1] == "written_off"
