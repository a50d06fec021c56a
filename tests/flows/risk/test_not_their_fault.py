"""A chargeback counts against a consumer. A payment that nobody tried to charge does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota import config
from cuota.core.order.order import Status
from cuota.db.risk import history
from cuota.work.due_orders import settle_due_orders
from support.disputes import charged_back, disputed, network_decides
from support.flows.due import settle_all_due
from support.flows.interrupted import FlakyRail, with_rail
from support.makers import complete
from support.own_service import Own, opened_own

PHONE = "2125550188"


@pytest.fixture
async def standard(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Own]:
    """A service with the policy of the release."""
    async with opened_own(replace(settings, policy=None), own_database) as own:
        yield own


async def buy(own: Own, amount: str) -> tuple[dict[str, Any], Status]:
    """Let the consumer buy something. Return the order and its status."""
    created = await own.auto_merchant.create(amount)
    order = await complete(own.service, own.auto_merchant.merchant_id, created, phone=PHONE)
    return created, order.status


async def reasons_of(own: Own, created: dict[str, Any]) -> list[str]:
    [row] = await own.context.pool.fetch(
        "SELECT reasons FROM decisions WHERE merchant_id = $1 AND order_id = $2",
        own.auto_merchant.merchant_id,
        UUID(created["orderId"]),
    )
    return list(row["reasons"])


async def taken_back(own: Own, *, lost: bool) -> None:
    """Let the consumer's bank take back the first payment of an order that is refunded otherwise."""
    shop = own.auto_merchant
    created, _ = await buy(own, "100.00")
    assert (await shop.move(created, "refund", "75.00")).status_code == 200
    dispute = await charged_back(shop, created, 2500)
    await network_decides(shop, created, dispute, for_consumer=lost)


async def test_a_consumer_whose_bank_took_back_two_payments_is_declined(standard: Own) -> None:
    for _ in range(2):
        await taken_back(standard, lost=True)
    created, status = await buy(standard, "50.00")
    assert status is Status.DECLINED
    assert "disputed_payments" in await reasons_of(standard, created)


async def test_a_payment_that_a_bank_took_back_is_no_paid_installment(standard: Own) -> None:
    await taken_back(standard, lost=True)
    context = standard.context
    known = await history.past(context.pool, context.vault.consumer_id(PHONE), context.now())
    assert (known.paid_installments, known.disputes) == (0, 1)


async def test_chargebacks_that_the_shop_won_do_not_count(standard: Own) -> None:
    for _ in range(2):
        await taken_back(standard, lost=False)
    assert (await buy(standard, "50.00"))[1] is Status.APPROVED


@pytest.mark.parametrize("claim", [disputed, charged_back])
async def test_payments_that_a_dispute_pauses_are_not_overdue(standard: Own, claim: Any) -> None:
    created, _ = await buy(standard, "100.00")
    await claim(standard.auto_merchant, created, 2500)
    for _ in range(17):
        standard.service.clock.ahead += timedelta(days=1)
        await settle_all_due(standard.context)
    assert (await buy(standard, "50.00"))[1] is Status.APPROVED


async def test_a_payment_is_not_overdue_while_the_card_rail_does_not_answer(standard: Own) -> None:
    await buy(standard, "100.00")
    silent = with_rail(standard.context, FlakyRail(standard.context.rails.card, lost=100_000, arrives=False))
    for _ in range(64):
        standard.service.clock.ahead += timedelta(hours=6)
        await settle_due_orders(silent)
    assert (await buy(standard, "50.00"))[1] is Status.APPROVED
