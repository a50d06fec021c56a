"""Events from card processors: verified, stored once, applied once, in any order, also when they were never delivered."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.checkout.ending import Charging
from cuota.db.plan import card_events, charges
from cuota.flows.context import utc_now
from cuota.flows.plan.card_events import apply_events, fetch_events
from cuota.flows.plan.manage_plan import change_card, find_plan
from cuota.rails.card.sandbox import (
    DISPUTED_AFTER,
    PROCESSING_TIME,
    RENEWED_AFTER,
    RENEWED_LAST4,
    SIGNATURE,
    SandboxCardRail,
)
from support.card import token_of
from support.flows.collecting import agreed
from support.makers import complete
from support.own_service import Own
from support.rails.parts import a_charge

PATH = "/rails/card/events"
SLOW, DISPUTED, RENEWED, PAYS = (
    "4000 0000 0000 3006", "4000 0000 0000 2685", "4000 0000 0000 4004", "4242 4242 4242 4242",
)  # fmt: skip


def processor(own: Own) -> SandboxCardRail:
    found = own.context.rails.card.sandbox
    assert found is not None
    return found


async def stored(own: Own) -> list[dict[str, Any]]:
    async with own.owner() as owner:
        return [dict(row) for row in await owner.fetch("SELECT * FROM card_events ORDER BY at, event_id")]


async def slow_order(own: Own) -> tuple[UUID, dict[str, str], bytes]:
    """An order whose charge is in progress at the bank, and the processor's message about that charge."""
    created = await own.auto_merchant.create("100.00")
    merchant_id, order_id = own.auto_merchant.merchant_id, UUID(created["orderId"])
    with pytest.raises(Charging):
        await complete(own.service, merchant_id, created, SLOW)
    pending = await charges.pending(own.context.pool, merchant_id, order_id)
    assert pending is not None
    headers, body = processor(own).sign_event(
        a_charge(key=pending.charge.charge_id, merchant_id=merchant_id, order_id=order_id)
    )
    return order_id, headers, body


async def bought(own: Own, card: str) -> UUID:
    created = await own.auto_merchant.create("100.00")
    await complete(own.service, own.auto_merchant.merchant_id, created, card)
    return UUID(created["orderId"])


async def due_again(own: Own) -> None:
    """Let every lease and wait of an event be over."""
    async with own.owner() as owner:
        await owner.execute("UPDATE card_events SET apply_at = now() WHERE apply_at IS NOT NULL")


async def test_a_signed_event_is_stored_once_however_often_it_is_delivered(own: Own) -> None:
    _, headers, body = await slow_order(own)
    async with own.service.client() as http:
        answers = await asyncio.gather(*(http.post(PATH, content=body, headers=headers) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {204}
    assert [row["kind"] for row in await stored(own)] == ["charge.changed"]


async def test_a_message_that_no_processor_signed_is_refused_and_nothing_is_stored(own: Own) -> None:
    _, headers, body = await slow_order(own)
    async with own.service.client() as http:
        for changed, sent in (
            ({}, body), ({SIGNATURE: "0" * 64}, body), ({SIGNATURE: "é"}, body), (headers, body + b" "), (headers, b""),
        ):  # fmt: skip
            answer = await http.post(
                PATH, content=sent, headers=[(k.encode(), v.encode()) for k, v in changed.items()]
            )
            assert (answer.status_code, answer.json()["code"]) == (401, "invalid_signature")
        large = await http.post(PATH, content=b"x" * 300_000, headers=headers)
        assert large.status_code == 413
    assert await stored(own) == []


async def test_an_event_about_a_charge_makes_the_worker_look_it_up_now(own: Own) -> None:
    order_id, headers, body = await slow_order(own)
    async with own.service.clock.moved(seconds=PROCESSING_TIME.total_seconds() + 1):
        async with own.service.client() as http:
            await http.post(PATH, content=body, headers=headers)
        assert await apply_events(own.context) == 1
    assert (await own.auto_merchant.read({"orderId": str(order_id)}))["orderStatus"] == "Approved"
    assert [row["apply_at"] for row in await stored(own)] == [None]
    assert await apply_events(own.context) == 0


async def test_an_event_that_comes_before_its_charge_is_settled_changes_nothing(own: Own) -> None:
    order_id, headers, body = await slow_order(own)
    async with own.service.client() as http:
        await http.post(PATH, content=body, headers=headers)
    assert await apply_events(own.context) == 1
    assert (await own.auto_merchant.read({"orderId": str(order_id)}))["orderStatus"] == "Created"


async def test_an_event_whose_worker_died_is_applied_by_another_one(own: Own) -> None:
    order_id, headers, body = await slow_order(own)
    async with own.service.clock.moved(seconds=PROCESSING_TIME.total_seconds() + 1):
        async with own.service.client() as http:
            await http.post(PATH, content=body, headers=headers)
        assert (
            len(await card_events.claim(own.context.pool, utc_now(), 10)) == 1
        )  # and the worker is killed here
        assert await apply_events(own.context) == 0
        await due_again(own)
        assert await apply_events(own.context) == 1
    assert (await own.auto_merchant.read({"orderId": str(order_id)}))["orderStatus"] == "Approved"


async def test_a_dispute_that_was_never_delivered_is_fetched_once_by_any_number_of_workers(own: Own) -> None:
    order_id = await bought(own, DISPUTED)
    assert await fetch_events(own.context) == 0
    async with own.service.clock.moved(seconds=(DISPUTED_AFTER + timedelta(minutes=1)).total_seconds()):
        assert sum(await asyncio.gather(*(fetch_events(own.context) for _ in range(4)))) == 1
        assert await fetch_events(own.context) == 0
    (row,) = await stored(own)
    assert (row["kind"], row["order_id"], row["amount"]) == ("dispute.opened", order_id, 2500)


async def test_a_card_that_its_bank_replaced_is_shown_with_its_new_digits_and_goes_on_paying(
    own: Own,
) -> None:
    order_id = await bought(own, RENEWED)
    before = (await agreed(own, order_id)).card
    async with own.service.clock.moved(seconds=(RENEWED_AFTER + timedelta(minutes=1)).total_seconds()):
        await fetch_events(own.context)
        await apply_events(own.context)
    after = (await agreed(own, order_id)).card
    assert (before.last4, after.last4, after.token) == ("4004", RENEWED_LAST4, before.token)


async def test_a_plan_that_another_card_pays_by_now_keeps_that_card(own: Own) -> None:
    from cuota.core.checkout.card import read_card
    from cuota.flows.plan.limit_asks import Asker

    order_id = await bought(own, RENEWED)
    found = await agreed(own, order_id)
    async with own.owner() as owner:
        row = await owner.fetchrow(
            "SELECT p.consumer_id, c.phone FROM plans p JOIN consumers c USING (consumer_id) WHERE order_id = $1",
            order_id,
        )
    detail = await find_plan(own.context, row["consumer_id"], own.auto_merchant.merchant_id, order_id)
    assert detail is not None
    token = await token_of(own.context, read_card(PAYS, "12/39", "123", found.plan[0].due_on))
    await change_card(own.context, detail, token, 0, Asker(row["phone"]))
    async with own.service.clock.moved(seconds=(RENEWED_AFTER + timedelta(minutes=1)).total_seconds()):
        await fetch_events(own.context)
        await apply_events(own.context)
    assert (await agreed(own, order_id)).card.last4 == "4242"
