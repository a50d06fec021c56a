"""An order that waits for a person, beside what else the operator does: a suspension of its merchant, and a block of its consumer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cuota import config
from cuota.core.order.order import Status
from cuota.core.risk.block import BlockKind
from cuota.flows.checkout.take_step import Problem
from cuota.flows.merchant.suspend_merchant import resume_merchant, suspend_merchant
from cuota.flows.risk.block_consumer import block_consumer
from cuota.work.due_orders import settle_due_orders
from support import reviews
from support.own_service import Own
from support.reviews import buy, decided, opened_referring, referred


@pytest.fixture
async def own(settings: config.Settings, own_database: dict[str, Any], folder: Path) -> AsyncIterator[Own]:
    """A service whose policy refers a new consumer's orders."""
    async with opened_referring(settings, own_database, folder) as opened_under_it:
        yield opened_under_it


async def suspended(own: Own) -> None:
    await suspend_merchant(own.context, own.merchant.name, hold=False)


async def test_an_approval_charges_nothing_while_the_merchant_is_suspended_and_counts_afterwards(
    own: Own,
) -> None:
    order, phone = await referred(own)
    await suspended(own)
    await reviews.approve(own.service, order)
    with pytest.raises(Problem, match="cannot take payments"):
        await buy(own, order, phone)
    assert await decided(own) == []
    await resume_merchant(own.context, own.merchant.name)
    assert (await buy(own, order, phone)).status is Status.APPROVED


async def test_a_review_of_a_suspended_merchant_is_declined_by_a_person_or_in_time(own: Own) -> None:
    order, _ = await referred(own)
    late, _ = await referred(own)
    await suspended(own)
    assert (await reviews.decline(own.service, order)).status is Status.DECLINED
    async with own.service.clock.moved(minutes=55):
        await settle_due_orders(own.context)
        row = await reviews.stored(own.service, late)
        assert row["state"] == "unanswered"


async def test_an_approval_does_not_overrule_a_block(own: Own) -> None:
    order, phone = await referred(own)
    row = await reviews.stored(own.service, order)
    await block_consumer(own.context, row["consumer_id"], BlockKind.IDENTITY, "stolen phone", None, by="Ana")
    await reviews.approve(own.service, order)
    assert (await buy(own, order, phone)).status is Status.DECLINED
    (made,) = await decided(own)
    assert made["reasons"][0] == "blocked_identity"
