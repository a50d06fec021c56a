"""The operator pays a refund that a card refused in another way, and records that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from cuota.db.plan import charges
from cuota.db.plan.card_events import DueEvent
from cuota.db.plan.charges import failed_refunds
from cuota.db.verify.recalculate import verify
from cuota.flows.dispute.report_chargeback import report_chargeback
from cuota.flows.order.pay_refund_otherwise import NotOwed, pay_refund_otherwise
from cuota.flows.order.return_money import return_money
from support.makers import complete
from support.own_service import Own

BALANCE = """SELECT coalesce(sum(CASE WHEN credit = $1 THEN amount ELSE -amount END), 0)::bigint AS cents
    FROM transfers WHERE $1 IN (debit, credit)"""


async def refunded(own: Own, *, refused: bool) -> tuple[dict[str, Any], UUID]:
    """Refund 15.00 to the card of an order of 100.00. Return the order and the card refund's id."""
    shop = own.auto_merchant
    order = await shop.create("100.00")
    await complete(own.service, shop.merchant_id, order)
    assert (await shop.move(order, "refund", "90.00")).status_code == 200
    async with own.owner() as owner:
        if refused:
            await owner.execute("UPDATE card_simulator.charges SET refunded = amount")
        card_refund_id: UUID = await owner.fetchval("SELECT card_refund_id FROM card_refunds")
    return order, card_refund_id


async def balance(own: Own, account: str) -> int:
    async with own.owner() as owner:
        return int(await owner.fetchval(BALANCE, account))


async def charged_back(own: Own, order: dict[str, Any], *statuses: str) -> None:
    async with own.owner() as owner:
        charge_id = await owner.fetchval("SELECT charge_id FROM card_refunds")
    for status in statuses:
        event = DueEvent(
            own.auto_merchant.merchant_id, UUID(order["orderId"]), "sandbox", str(uuid4()), "dispute.opened", charge_id,
            None, "fraudulent", 2500, "dp_1", status, own.context.now() + timedelta(days=9),
        )  # fmt: skip
        await report_chargeback(own.context, event, closes=status in {"won", "lost"})


async def test_a_failed_refund_that_was_paid_in_another_way_is_not_owed_or_listed_any_more(own: Own) -> None:
    _, card_refund_id = await refunded(own, refused=True)
    await return_money(own.context)
    assert await balance(own, "consumer_refund_due") == 1500
    assert await pay_refund_otherwise(own.context, card_refund_id) == 1500
    assert await failed_refunds(own.context.pool, 10) == []
    assert (await balance(own, "consumer_refund_due"), await balance(own, "bank_clearing")) == (0, 1500)
    assert await pay_refund_otherwise(own.context, card_refund_id) is None
    assert await balance(own, "bank_clearing") == 1500
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_chargeback_that_is_lost_later_does_not_count_as_the_refund(own: Own) -> None:
    order, card_refund_id = await refunded(own, refused=True)
    await return_money(own.context)
    await pay_refund_otherwise(own.context, card_refund_id)
    await charged_back(own, order, "needs_response", "lost")
    unsent, _ = await charges.unsent(own.context.pool, own.auto_merchant.merchant_id, UUID(order["orderId"]))
    assert unsent == ()
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT state FROM card_refunds") == "paid_otherwise"
        assert (
            await owner.fetchval("SELECT count(*) FROM transfers WHERE posting = 'refund_charged_back'") == 0
        )
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_refund_on_its_way_and_one_on_the_card_cannot_be_settled(own: Own) -> None:
    _, card_refund_id = await refunded(own, refused=False)
    with pytest.raises(NotOwed, match="is on its way to the card"):
        await pay_refund_otherwise(own.context, card_refund_id)
    await return_money(own.context)
    with pytest.raises(NotOwed, match="is on the card"):
        await pay_refund_otherwise(own.context, card_refund_id)
    with pytest.raises(NotOwed, match="List the failed ones with: cuota card-refunds"):
        await pay_refund_otherwise(own.context, uuid4())
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_refund_that_a_lost_chargeback_covered_cannot_be_settled(own: Own) -> None:
    order, card_refund_id = await refunded(own, refused=True)
    await return_money(own.context)
    await charged_back(own, order, "needs_response", "lost")
    with pytest.raises(NotOwed, match="a lost chargeback returned the same money"):
        await pay_refund_otherwise(own.context, card_refund_id)
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_refund_is_not_settled_while_a_chargeback_of_its_payment_is_open(own: Own) -> None:
    order, card_refund_id = await refunded(own, refused=True)
    await return_money(own.context)
    await charged_back(own, order, "needs_response")
    with pytest.raises(NotOwed, match="Wait until it is closed"):
        await pay_refund_otherwise(own.context, card_refund_id)
    await charged_back(own, order, "won")
    assert await pay_refund_otherwise(own.context, card_refund_id) == 1500
    assert (await verify(own.context.pool)).disagreements == []
