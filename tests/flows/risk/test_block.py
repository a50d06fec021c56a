"""A blocked consumer is declined and told why, and can still pay. A block waits for orders that are being decided."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.order.order import Order, Status
from cuota.core.risk.block import BlockKind
from cuota.core.sandbox import APPROVED_SURNAME
from cuota.db.checkout.loaded import Checkout
from cuota.flows.plan.limit_asks import Asker
from cuota.flows.plan.manage_plan import find_plan, pay_early
from cuota.flows.risk import block_consumer as blocking
from cuota.flows.risk.block_consumer import Blocked, CannotBlock, block_consumer, unblock_consumer
from cuota.flows.risk.explain_order import explain_order, letter_of
from cuota.flows.risk.review_decisions import BEGINNING, END, replay
from support.core.values import PROFILE
from support.flows.buttons import opened, press
from support.flows.gates import HISTORY, RESERVE, SAVE, killed, stopped
from support.makers import complete
from support.own_service import Own
from support.phones import phone_number


async def block(own: Own, phone: str, kind: BlockKind = BlockKind.MISUSE, **until: Any) -> Blocked:
    at = own.context.now() + timedelta(**until) if until else None
    consumer_id = own.context.vault.consumer_id(phone)
    return await block_consumer(own.context, consumer_id, kind, "odd orders", at, by="Ana <ana@example.com>")


async def buy(own: Own, phone: str, **more: Any) -> Order:
    order = await own.auto_merchant.create("100.00")
    return await complete(own.service, own.auto_merchant.merchant_id, order, phone=phone, **more)


async def made(own: Own) -> list[Any]:
    async with own.owner() as owner:
        return list(await owner.fetch("SELECT * FROM decisions ORDER BY decided_at"))


@pytest.mark.parametrize("kind", list(BlockKind))
async def test_a_blocked_consumer_is_declined_with_the_reason_of_the_block_and_the_decision_can_be_repeated(
    own: Own, kind: BlockKind
) -> None:
    phone = phone_number()
    await block(own, phone, kind)
    order = await buy(own, phone)
    assert order.status is Status.DECLINED
    (decision,) = await made(own)
    assert decision["reasons"] == [f"blocked_{kind}"]
    told = await explain_order(own.context, order.order_id)
    assert f"blocked_{kind}: the operator has blocked the consumer" in "\n".join(told.lines)
    assert "gives the same result" in "\n".join(told.lines)
    letter = await letter_of(own.context, decision["decision_id"])
    assert "The principal reason was:" in letter.facts["letter"]
    found = await replay(own.context, BEGINNING, END, None)
    assert (found.decisions, found.differences) == (1, [])


async def test_the_name_that_asks_the_sandbox_for_an_approval_does_not_end_a_block(own: Own) -> None:
    phone = phone_number()
    await block(own, phone)
    profile = PROFILE.__class__(PROFILE.given_names, APPROVED_SURNAME, PROFILE.email, PROFILE.address)
    assert (await buy(own, phone, profile=profile)).status is Status.DECLINED


async def test_a_block_ends_on_its_day_or_when_a_person_ends_it(own: Own) -> None:
    phone = phone_number()
    await block(own, phone, days=2)
    assert (await buy(own, phone)).status is Status.DECLINED
    async with own.service.clock.moved(days=3):
        assert (await buy(own, phone)).status is Status.APPROVED
        with pytest.raises(CannotBlock, match="not blocked"):
            await unblock_consumer(own.context, own.context.vault.consumer_id(phone), by="Ana")
        await block(own, phone)
        assert (await buy(own, phone)).status is Status.DECLINED
        await unblock_consumer(own.context, own.context.vault.consumer_id(phone), by="Ana")
        assert (await buy(own, phone)).status is Status.APPROVED


async def test_a_blocked_consumer_can_still_pay(own: Own) -> None:
    phone = phone_number()
    order = await buy(own, phone)
    await block(own, phone, BlockKind.UNPAID)
    ids = own.context.vault.consumer_id(phone), order.merchant_id, order.order_id
    detail = await find_plan(own.context, *ids)
    assert detail is not None
    await pay_early(own.context, detail, [2, 3, 4], 7500, Asker(phone))
    detail = await find_plan(own.context, *ids)
    assert detail is not None
    assert all(item.paid for item in detail.shown.plan)


async def test_if_two_people_block_a_consumer_at_the_same_moment_one_block_is_made(own: Own) -> None:
    phone = phone_number()
    done = await asyncio.gather(*(block(own, phone) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(each, Blocked) for each in done) == 1
    assert {str(each) for each in done if isinstance(each, CannotBlock)} == {
        "The consumer is blocked already. End that block first to make another."
    }


async def begun(own: Own, phone: str, pressing: asyncio.Task[Any]) -> asyncio.Task[Blocked]:
    """Block the consumer while a press is still in progress."""
    doing = asyncio.create_task(block(own, phone))
    async with own.owner() as owner:
        while not await owner.fetchval("SELECT count(*) FROM consumer_blocks"):  # noqa: ASYNC110, another session's row
            await asyncio.sleep(0.01)
    assert not pressing.done()
    return doing


async def one_checkout(own: Own, phone: str) -> Checkout:
    return (await opened(own, phone, 1, "100.00"))[0]


async def test_a_block_waits_for_an_order_that_is_being_decided_and_reports_its_result(
    own: Own,
) -> None:
    phone = phone_number()
    seen = await one_checkout(own, phone)
    pressing, pool = await stopped(own, seen, "before", SAVE)
    doing = await begun(own, phone, pressing)
    await asyncio.sleep(0.2)
    assert not doing.done()
    pool.go.set()
    assert (await pressing).status is Status.APPROVED
    done = await doing
    assert [each.order_id for each in done.meanwhile] == [seen.order.order_id]
    assert (await buy(own, phone)).status is Status.DECLINED


async def test_an_order_whose_history_is_read_after_the_block_is_declined(own: Own) -> None:
    phone = phone_number()
    pressing, pool = await stopped(own, await one_checkout(own, phone), "before", HISTORY)
    doing = await begun(own, phone, pressing)
    pool.go.set()
    assert (await pressing).status is Status.DECLINED
    assert [each.state for each in (await doing).meanwhile] == [Status.DECLINED]


async def test_presses_during_a_block_are_either_approved_before_it_or_declined(own: Own) -> None:
    phone = phone_number()
    seen = await opened(own, phone, 6, "20.00")
    results = await asyncio.gather(*(press(own.context, each) for each in seen[:3]), block(own, phone))
    done: Blocked = results[-1]
    assert {each.state for each in done.meanwhile} <= {Status.APPROVED, Status.DECLINED, ""}
    for each in seen[3:]:
        assert (await press(own.context, each)).status is Status.DECLINED


async def test_a_block_does_not_wait_forever_for_a_press_that_crashed(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocking, "PATIENCE_SECONDS", 0.2)
    phone = phone_number()
    seen = await one_checkout(own, phone)
    await killed(own, seen, "after", RESERVE)
    done = await block(own, phone)
    assert [(each.order_id, each.state) for each in done.meanwhile] == [(seen.order.order_id, "")]


async def test_the_database_refuses_a_second_current_block_and_an_unknown_kind(own: Own) -> None:
    consumer_id: UUID = own.context.vault.consumer_id(phone_number())
    insert = """INSERT INTO consumer_blocks (consumer_id, block_id, kind, blocked_at, blocked_by)
        VALUES ($1, gen_random_uuid(), $2, now(), 'Ana')"""
    async with own.owner() as owner:
        await owner.execute(insert, consumer_id, "misuse")
        with pytest.raises(Exception, match="consumer_blocks_one"):
            await owner.execute(insert, consumer_id, "misuse")
        with pytest.raises(Exception, match="consumer_blocks_kind_check"):
            await owner.execute(insert, own.context.vault.consumer_id(phone_number()), "race")
