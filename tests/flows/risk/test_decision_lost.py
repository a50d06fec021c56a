"""A decision whose save is lost or repeatedly stale is stored once, reported once, and charged once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from cuota import config
from cuota.core.checkout.card import read_card
from cuota.core.consumer import Profile
from cuota.core.order.order import Final, Status
from cuota.db.risk import approvals
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.take_step import propose
from cuota.flows.context import Context
from cuota.flows.plan.send_messages import send_messages
from cuota.flows.risk.settle_reservations import settle_reservations
from support.card import pay
from support.flows.interrupted import CutPool
from support.makers import ADDRESS, PROFILE, checkout, complete, read_checkout
from support.own_service import Own, opened_own
from support.phones import phone_number

DECLINED = Profile("Jordan", "Declinetest", "jordan@mail.example", ADDRESS)


@pytest.fixture
async def own(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Own]:
    """A service with the policy of the release."""
    async with opened_own(replace(settings, policy=None), own_database) as opened:
        yield opened


async def press(own: Own, context: Context, order: dict[str, Any], secret: str) -> Status:
    """Press the payment button. A second press shows the result of the first."""
    ids = own.merchant.merchant_id, UUID(order["orderId"])
    seen = await read_checkout(own.context, *ids, secret)
    assert seen.session.profile is not None
    entry = read_card("4242 4242 4242 4242", "12/39", "123", datetime.now(UTC).date())
    agreed = propose(context, seen, seen.session.profile).agreement.hash
    try:
        return (await pay(context, seen, entry, agreed)).status
    except Final as final:
        return final.status


async def count(own: Own, what: str) -> int:
    async with own.owner() as owner:
        return int(await owner.fetchval(f"SELECT count(*) FROM {what}"))


@pytest.mark.parametrize("when", ["before", "while", "after"])
async def test_a_decline_whose_answer_is_lost_is_reported_once(own: Own, when: str) -> None:
    order = await own.merchant.create()
    _, secret = await checkout(own.service, own.merchant.merchant_id, order, DECLINED, phone_number())
    pool = CutPool(own, when)
    assert await press(own, replace(own.context, pool=pool), order, secret) is Status.DECLINED
    assert pool.cut == 1
    assert await press(own, own.context, order, secret) is Status.DECLINED
    for _ in range(2):
        await send_messages(own.context)
    assert await count(own, "decisions") == await count(own, "messages WHERE kind = 'declined'") == 1
    assert await count(own, "message_simulator.inbox WHERE channel = 'mail'") == 1
    assert await count(own, "events WHERE type = 'order.declined'") == 1
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_decision_that_is_stale_twice_is_made_a_third_time_with_the_newest_facts(own: Own) -> None:
    phone = phone_number()
    order = await own.merchant.create("900.00")
    _, secret = await checkout(own.service, own.merchant.merchant_id, order, PROFILE, phone)

    async def another() -> None:
        # Between the decision and its save, the reservation expires and the same consumer pays for another order.
        async with own.owner() as owner:
            await owner.execute("UPDATE consumer_reservations SET expires_at = now()")
        assert await settle_reservations(own.context) == 1
        await complete(
            own.service, own.merchant.merchant_id, await own.merchant.create("900.00"), phone=phone
        )

    pool = CutPool(own, "never", another)
    assert await press(own, replace(own.context, pool=pool), order, secret) is Status.DECLINED
    assert pool.contended == 2
    async with own.owner() as owner:
        sql = "SELECT inputs, reasons FROM decisions WHERE order_id = $1"
        [kept] = await owner.fetch(sql, UUID(order["orderId"]))
    assert json.loads(kept["inputs"])["history"]["outstanding"] == 2 * 67_500
    assert kept["reasons"][0] == "over_limit"
    assert await count(own, "charges") == 2


async def test_a_mode_that_was_set_to_off_during_the_evaluation_is_not_set_to_on(own: Own) -> None:
    pool, merchant_id = own.context.pool, own.merchant.merchant_id
    assert await approvals.move(pool, merchant_id, "trial")
    assert await approvals.move(pool, merchant_id, "off", was="trial")
    assert not await approvals.move(pool, merchant_id, "on", "m1", was="trial")
    assert (await approvals.read(pool, merchant_id)) == approvals.ApprovalsState("off", None)
