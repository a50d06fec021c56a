"""Several people use one card: which orders the policy approves and declines, and what the consumers are told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from cuota import config
from cuota.core.order.order import Status
from cuota.core.risk.policy import Window
from cuota.db.verify.recalculate import verify
from support.makers import complete
from support.own_service import Own, opened_own
from support.phones import phone_number

CARD = "5555 5555 5555 4444"


@pytest.fixture
async def own(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Own]:
    """The policy allows two orders a day with the same card."""
    async with opened_own(replace(settings, policy=None), own_database) as opened:
        policy = opened.context.policy
        narrow = replace(policy, velocity=replace(policy.velocity, card=Window(2, 24)))
        opened.service.context = replace(opened.context, policy=narrow)
        yield opened


async def buy(own: Own, number: int) -> Status:
    merchant = (own.merchant, own.auto_merchant)[number % 2]
    order = await merchant.create()
    return (await complete(own.service, merchant.merchant_id, order, CARD, phone=phone_number())).status


async def test_the_third_person_with_one_card_is_declined_wherever_they_buy(own: Own) -> None:
    assert [await buy(own, number) for number in range(3)] == [
        Status.APPROVED, Status.APPROVED, Status.DECLINED,
    ]  # fmt: skip
    async with own.owner() as owner:
        reasons = "SELECT reasons FROM decisions ORDER BY decided_at DESC LIMIT 1"
        assert await owner.fetchval(reasons) == ["velocity_card"]
    assert (await verify(own.context.pool)).disagreements == []
