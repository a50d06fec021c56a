"""A change of a plan is made once, also by two people, at the limit of a consumer, after a crash, or a lost answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from cuota.core.order.change_plan import CHANGED_MEANWHILE
from cuota.core.plan.change import PlanChange
from cuota.core.plan.hardship import (
    CannotChange,
    PausePlan,
    WaiveFee,
)
from cuota.db.pool import Pool
from cuota.flows.plan import change_plan as flow
from cuota.flows.plan.change_plan import agree_on_change, preview_change
from cuota.flows.plan.send_messages import send_messages
from cuota.flows.privacy.erase_consumer import erase_consumer
from cuota.flows.privacy.export_consumer import export_consumer
from cuota.work.card_refunds import return_due_money
from support.flows.changing import PHONE, WHY, change, mark_of, order_of, whole
from support.flows.collecting import set_clock
from support.own_service import Own


class LostAnswer(Pool):
    """The service's pool. The answer to the first change of a plan is lost after the commit."""

    def __init__(self, own: Own) -> None:
        super().__init__(own.context.pool._pool)
        self._lost = False

    async def fetchrow(self, sql: str, *values: object) -> Any:
        row = await super().fetchrow(sql, *values)
        if "save_plan_change(" in sql and not self._lost:
            self._lost = True
            raise asyncpg.ConnectionDoesNotExistError("the connection was closed")
        return row


async def test_if_two_people_change_a_plan_at_the_same_moment_one_succeeds_and_the_other_gets_a_message(
    own: Own,
) -> None:
    order_id = await order_of(own)
    mark = await mark_of(own, order_id, PausePlan(7))
    pauses = (change(own, order_id, PausePlan(days), mark) for days in (7, 10, 13))
    done = await asyncio.gather(*pauses, return_exceptions=True)
    assert sum(isinstance(each, PlanChange) for each in done) == 1
    assert {str(each) for each in done if isinstance(each, CannotChange)} == {CHANGED_MEANWHILE}
    await whole(own)


async def test_concurrent_waivers_for_one_consumer_never_exceed_the_limit_within_a_year(
    own: Own,
) -> None:
    ids = [await order_of(own, "400.00", fee="40.00") for _ in range(3)]
    done = await asyncio.gather(*(change(own, each, WaiveFee()) for each in ids), return_exceptions=True)
    assert sum(isinstance(each, PlanChange) for each in done) == 1
    assert {each.field for each in done if isinstance(each, CannotChange)} == {"waive"}
    async with own.owner() as owner:
        assert await owner.fetch("SELECT amount, settled FROM consumer_waivers") == [(3000, True)]
    left = ids[[isinstance(each, PlanChange) for each in done].index(False)]
    set_clock(own, own.context.now() + timedelta(days=366))
    await whole(own)
    assert (await preview_change(own.context, own.auto_merchant.merchant_id, left, WaiveFee())).new.waived > 0


async def test_a_waiver_whose_process_died_before_the_change_stops_counting(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    order_id = await order_of(own, "400.00", fee="60.00")

    async def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    mark = await mark_of(own, order_id, WaiveFee(4000))
    with monkeypatch.context() as patched:
        patched.setattr(flow, "settle", killed)
        with pytest.raises(KeyboardInterrupt):
            await change(own, order_id, WaiveFee(4000), mark)
    with pytest.raises(CannotChange, match=r"\$40.00 was waived already"):
        await mark_of(own, order_id, WaiveFee(2000))
    set_clock(own, own.context.now() + timedelta(minutes=16))
    assert (await change(own, order_id, WaiveFee(4000))).waived == 4000
    await whole(own)


async def test_a_change_whose_answer_was_lost_is_made_once_and_sent_to_the_consumer(own: Own) -> None:
    order_id = await order_of(own, fee="8.00")
    mark = await mark_of(own, order_id, WaiveFee())
    struck = replace(own.context, pool=LostAnswer(own))
    made = await agree_on_change(
        struck, own.auto_merchant.merchant_id, order_id, WaiveFee(), by="Ana", reason=WHY, mark=mark
    )
    assert (made.number, made.waived) == (1, 600)
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT count(*) FROM plan_changes") == 1
        assert await owner.fetchval("SELECT bool_and(settled) FROM consumer_waivers")
    await whole(own)


async def test_an_erasure_leaves_only_the_hash_of_a_change(own: Own) -> None:
    order_id = await order_of(own)
    made = await change(own, order_id, PausePlan(7))
    await send_messages(own.context)
    found = await export_consumer(own.context, PHONE)
    (order,) = found["orders"]
    assert order["plan_changes"][0]["reason"] == WHY
    assert order["plan_changes"][0]["text"] == made.text
    assert any("We charged" in message["said"]["text"] for message in order["messages"] if message["said"])
    await own.auto_merchant.move({"orderId": str(order_id)}, "refund", "100.00")
    while await return_due_money(own.context):
        pass
    assert (await erase_consumer(own.context, PHONE, dry_run=False)).done
    async with own.owner() as owner:
        row = await owner.fetchrow("SELECT text, text_hash, reason FROM plan_changes")
        assert tuple(row) == ("", made.text_hash, None)
        assert await owner.fetchval("SELECT count(*) FROM messages WHERE said IS NOT NULL") == 0
    await whole(own)
