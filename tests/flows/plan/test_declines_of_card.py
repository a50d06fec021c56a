"""The card networks' limits on retries apply to a card over all plans of all merchants."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.checkout.card import read_card
from cuota.core.order.order import Status
from cuota.core.plan.collection import CardExhausted
from cuota.core.plan.declines import ATTEMPTS_WITHIN, FINAL_KEPT, MOST_ATTEMPTS
from cuota.flows.checkout.allow_card import OTHER_CARD
from cuota.flows.checkout.take_step import Problem
from cuota.flows.plan.collect_installments import pay_now
from cuota.flows.plan.limit_asks import Asker
from cuota.flows.plan.manage_plan import change_card, find_plan
from cuota.work.tidy import tidy
from support.card import BACK, token_of
from support.flows.collecting import ZONE, set_clock
from support.flows.due import settle_all_due
from support.makers import Merchant, complete, make_merchant
from support.own_service import Own

# This is not one of the sandbox's test cards. Everybody uses these, so they have no fingerprint.
OURS, ANOTHER = "5555 5555 5555 4444", "4111 1111 1111 1111"


async def bought(own: Own, merchant: Merchant, card: str = OURS) -> UUID:
    created = await merchant.create("100.00")
    await complete(own.service, merchant.merchant_id, created, card)
    return UUID(created["orderId"])


async def bank_says(own: Own, behaviour: str) -> None:
    """Change how the simulated bank answers for every card."""
    async with own.owner() as owner:
        await owner.execute("UPDATE card_simulator.cards SET behaviour = $1", behaviour)


async def installment(own: Own, order_id: UUID, number: int = 2) -> Any:
    async with own.owner() as owner:
        return await owner.fetchrow(
            "SELECT charge_at, failures, charge_id FROM installments WHERE order_id = $1 AND number = $2", order_id, number
        )  # fmt: skip


async def tried(own: Own, order_id: UUID) -> int:
    """Return how often the card of a plan was charged."""
    async with own.owner() as owner:
        return int(await owner.fetchval("SELECT count(*) FROM charges WHERE order_id = $1", order_id))


async def work_at_due(own: Own, order_id: UUID) -> None:
    set_clock(own, (await installment(own, order_id))["charge_at"])
    await settle_all_due(own.context)


async def declined_before(own: Own, order_id: UUID, times: int) -> None:
    """Decline the second payment of a plan as often as this, in payments that the consumer starts."""
    await bank_says(own, "no_funds")
    for _ in range(times):
        order = await pay_now(own.context, own.auto_merchant.merchant_id, order_id, 2, 2500, BACK)
        assert order.status is Status.APPROVED
    await bank_says(own, "pays")


async def test_a_card_that_was_declined_for_good_is_not_charged_in_the_plan_of_another_merchant(
    own: Own,
) -> None:
    async with make_merchant(own.service, defer_funds_capture=False) as other:
        elsewhere = await bought(own, other)
        order_id = await bought(own, own.auto_merchant)
        await bank_says(own, "lost_later")
        ids = (own.auto_merchant.merchant_id, order_id)
        await pay_now(own.context, *ids, 2, 2500, BACK)
        with pytest.raises(CardExhausted):
            await pay_now(own.context, *ids, 2, 2500, BACK)
        assert await tried(own, order_id) == 2
        await bank_says(own, "pays")
        await work_at_due(own, elsewhere)
        found = await installment(own, elsewhere)
        assert (found["charge_at"], found["failures"], await tried(own, elsewhere)) == (None, 1, 1)
        async with own.owner() as owner:
            kinds = await owner.fetch("SELECT kind FROM messages WHERE order_id = $1 AND installment = 2", elsewhere)  # fmt: skip
        assert "card_needed" in {row["kind"] for row in kinds}


async def test_the_declines_of_all_plans_count_toward_a_card_s_limit_and_not_toward_other_cards(
    own: Own,
) -> None:
    async with make_merchant(own.service, defer_funds_capture=False) as other:
        elsewhere, free = await bought(own, other), await bought(own, own.auto_merchant, ANOTHER)
        own.service.clock.ahead += timedelta(days=10)
        order_id = await bought(own, own.auto_merchant)
        await declined_before(own, order_id, MOST_ATTEMPTS)
        first = own.context.now()
        await work_at_due(own, elsewhere)
        found = await installment(own, elsewhere)
        assert await tried(own, elsewhere) == 1
        assert abs(found["charge_at"] - first - ATTEMPTS_WITHIN) < timedelta(minutes=10)
        assert (await installment(own, free))["charge_id"] is not None
        await work_at_due(own, elsewhere)
        assert (await installment(own, elsewhere))["charge_id"] is not None


async def test_a_payment_that_waited_for_weeks_for_the_card_networks_is_announced_before_it_is_charged(
    own: Own,
) -> None:
    async with make_merchant(own.service, defer_funds_capture=False) as other:
        elsewhere = await bought(own, other)
        own.service.clock.ahead += timedelta(days=10)
        order_id = await bought(own, own.auto_merchant)
        await declined_before(own, order_id, MOST_ATTEMPTS)
        await work_at_due(own, elsewhere)
        at = (await installment(own, elsewhere))["charge_at"]
        set_clock(own, at - timedelta(days=1))
        await settle_all_due(own.context)
        async with own.owner() as owner:
            days = await owner.fetch("SELECT day FROM messages WHERE order_id = $1 AND kind = 'reminder' AND installment = 2", elsewhere)  # fmt: skip
        assert at.astimezone(ZONE).date() in {row["day"] for row in days}
        assert (await installment(own, elsewhere))["charge_id"] is None


async def test_the_checkout_and_the_account_page_refuse_a_card_that_was_declined_for_good(own: Own) -> None:
    order_id = await bought(own, own.auto_merchant)
    await bank_says(own, "lost_later")
    await pay_now(own.context, own.auto_merchant.merchant_id, order_id, 2, 2500, BACK)
    await bank_says(own, "pays")
    with pytest.raises(Problem) as refused:
        await bought(own, own.auto_merchant)
    assert refused.value.notice == OTHER_CARD
    another = await bought(own, own.auto_merchant, ANOTHER)
    async with own.owner() as owner:
        consumer_id = await owner.fetchval("SELECT consumer_id FROM plans WHERE order_id = $1", another)
        assert await owner.fetchval("SELECT count(*) FROM card_declines") == 1
    detail = await find_plan(own.context, consumer_id, own.auto_merchant.merchant_id, another)
    assert detail is not None
    token = await token_of(own.context, read_card(OURS, "12/39", "123", own.context.now().date()))
    with pytest.raises(Problem) as refused:
        await change_card(own.context, detail, token, 0, Asker("2125550187"))
    assert refused.value.notice == OTHER_CARD


async def test_declines_are_deleted_when_they_no_longer_count(own: Own) -> None:
    order_id = await bought(own, own.auto_merchant)
    await declined_before(own, order_id, 2)
    await bank_says(own, "lost_later")
    await pay_now(own.context, own.auto_merchant.merchant_id, order_id, 2, 2500, BACK)

    async def left(after: timedelta) -> int:
        own.service.clock.ahead += after
        await tidy(own.context)
        async with own.owner() as owner:
            return int(await owner.fetchval("SELECT count(*) FROM card_declines"))

    assert await left(timedelta()) == 3
    assert await left(ATTEMPTS_WITHIN) == 1
    assert await left(FINAL_KEPT) == 0
