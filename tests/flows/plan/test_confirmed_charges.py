"""Charges that the consumer must confirm with the card's bank (3-D Secure), and charges that the bank answers later."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.checkout.ending import Charging
from cuota.db.plan import charges, plans
from cuota.db.verify.recalculate import verify
from cuota.flows.charge_card import CONFIRM_WITHIN
from cuota.flows.checkout.submit_checkout import look_at_charge
from cuota.flows.plan.collect_installments import look_at_collection, pay_now
from cuota.rails.card.protocol import CardAnswer, ChargeRequest
from cuota.rails.card.rails import CardRails
from cuota.rails.card.sandbox import CONFIRM_PATH, PROCESSING_TIME, SandboxCardRail
from cuota.rails.unavailable import RailUnavailable
from cuota.work.due_orders import settle_due_orders
from support.card import BACK
from support.flows.collecting import agreed, charged, set_clock
from support.flows.due import settle_all_due
from support.makers import complete
from support.own_service import Own
from support.rails.parts import a_charge, rail_parts

ALWAYS, ONCE, THEN_DECLINED, SLOW = (
    "4000 0027 6000 3184", "4000 0025 0000 3155", "4000 0082 6000 3178", "4000 0000 0000 3006",
)  # fmt: skip


async def begun(own: Own, card: str) -> UUID:
    """Return the id of an order whose first charge has no final answer yet."""
    created = await own.auto_merchant.create("100.00")
    with pytest.raises(Charging):
        await complete(own.service, own.auto_merchant.merchant_id, created, card)
    return UUID(created["orderId"])


async def seen(own: Own, order_id: UUID) -> str | None:
    """Return what the page of the waiting consumer gets: the bank's address, or None."""
    merchant_id = own.auto_merchant.merchant_id
    pending = await charges.pending(own.context.pool, merchant_id, order_id)
    if pending is None:
        return None
    look = look_at_charge if await status(own, order_id) == "Created" else look_at_collection
    return await look(own.context, merchant_id, order_id, pending)


async def status(own: Own, order_id: UUID) -> Any:
    return (await own.auto_merchant.read({"orderId": str(order_id)}))["orderStatus"]


async def decide(own: Own, address: str | None, *, passed: bool) -> None:
    """Press a button on the bank's page."""
    processor = own.context.rails.card.sandbox
    assert processor is not None
    assert address is not None
    key = UUID(address.partition(f"{CONFIRM_PATH}/")[2])
    assert (await processor.find_waiting(key)) is not None
    assert (await processor.confirm(key, passed=passed) or "").startswith("http://127.0.0.1")
    assert await processor.confirm(key, passed=not passed) is None


async def test_a_first_payment_waits_for_the_bank_and_is_approved_once_the_consumer_confirms(
    own: Own,
) -> None:
    order_id = await begun(own, ALWAYS)
    address = await seen(own, order_id)
    assert (address, await status(own, order_id)) == (await seen(own, order_id), "Created")
    await decide(own, address, passed=True)
    assert await seen(own, order_id) is None
    assert (await status(own, order_id), await charged(own)) == ("Approved", [(1, 2500, "paid")])
    assert (await verify(own.context.pool)).disagreements == []


@pytest.mark.parametrize(
    ("card", "reason"), [(ALWAYS, "authentication_failed"), (THEN_DECLINED, "card_declined")]
)
async def test_a_refused_confirmation_declines_the_card_and_another_card_can_pay(
    own: Own, card: str, reason: str
) -> None:
    order_id = await begun(own, card)
    await decide(own, await seen(own, order_id), passed=card == THEN_DECLINED)
    assert await seen(own, order_id) is None
    assert (await status(own, order_id), await charged(own)) == ("Created", [(1, 2500, reason)])


async def test_a_confirmation_that_never_comes_expires_and_cannot_be_paid_any_more(own: Own) -> None:
    order_id = await begun(own, ALWAYS)
    address = await seen(own, order_id)
    async with own.service.clock.moved(seconds=CONFIRM_WITHIN.total_seconds() - 60):
        await settle_due_orders(own.context)
        assert await seen(own, order_id) == address
    async with own.service.clock.moved(seconds=CONFIRM_WITHIN.total_seconds()):
        await settle_due_orders(own.context)
    assert (await status(own, order_id), await charged(own)) == (
        "Created",
        [(1, 2500, "authentication_abandoned")],
    )
    processor = own.context.rails.card.sandbox
    assert processor is not None
    assert address is not None
    assert await processor.confirm(UUID(address.partition(f"{CONFIRM_PATH}/")[2]), passed=True) is None


async def test_a_card_that_was_confirmed_once_pays_all_later_payments_without_a_confirmation(
    own: Own,
) -> None:
    order_id = await begun(own, ONCE)
    await decide(own, await seen(own, order_id), passed=True)
    assert await seen(own, order_id) is None
    for number in (1, 2, 3):
        at = (await agreed(own, order_id)).plan[number].charge_at
        assert at is not None
        set_clock(own, at)
        await settle_all_due(own.context)
    assert await charged(own) == [(number, 2500, "paid") for number in (1, 2, 3, 4)]


async def test_for_a_later_payment_that_needs_a_confirmation_the_consumer_gets_a_message_and_confirms_on_the_page(
    own: Own,
) -> None:
    order_id = await begun(own, ALWAYS)
    await decide(own, await seen(own, order_id), passed=True)
    assert await seen(own, order_id) is None
    at = (await agreed(own, order_id)).plan[1].charge_at
    assert at is not None
    set_clock(own, at)
    await settle_all_due(own.context)
    assert (await charged(own))[1] == (2, 2500, "authentication_required")
    async with own.owner() as owner:
        kinds = [row[0] for row in await owner.fetch("SELECT kind FROM messages WHERE installment = 2")]
    assert "confirmation_needed" in kinds
    with pytest.raises(Charging):
        await pay_now(own.context, own.auto_merchant.merchant_id, order_id, 2, 2500, BACK)
    await decide(own, await seen(own, order_id), passed=True)
    assert await seen(own, order_id) is None
    assert (await agreed(own, order_id)).plan[1].paid
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_charge_in_progress_at_the_bank_is_looked_up_until_it_pays(own: Own) -> None:
    order_id = await begun(own, SLOW)
    assert (await seen(own, order_id), await status(own, order_id)) == (None, "Created")
    async with own.service.clock.moved(seconds=PROCESSING_TIME.total_seconds() + 1):
        await settle_due_orders(own.context)
    assert (await status(own, order_id), await charged(own)) == ("Approved", [(1, 2500, "paid")])


class OtherRail(SandboxCardRail):
    """A second card processor."""

    name = "other"


async def test_a_running_plan_keeps_its_rail_after_the_operator_has_chosen_another(own: Own) -> None:
    created = await own.auto_merchant.create("100.00")
    await complete(own.service, own.auto_merchant.merchant_id, created)
    order_id = UUID(created["orderId"])
    found = await plans.read(own.context.pool, own.auto_merchant.merchant_id, order_id)
    assert found is not None
    assert found.card.token.startswith("sandbox:card_")
    other = OtherRail(*rail_parts(own.context.pool, now=own.context.now))
    both = CardRails(other, [own.context.rails.card.active])
    alone = replace(own.context, rails=replace(own.context.rails, card=CardRails(other)))
    switched = replace(own.context, rails=replace(own.context.rails, card=both))
    at = found.plan[1].charge_at
    assert at is not None
    set_clock(own, at)
    await settle_due_orders(alone)
    assert await charged(own) == [(1, 2500, "paid")]
    own.service.clock.ahead += timedelta(minutes=1)
    await settle_all_due(switched)
    assert await charged(own) == [(1, 2500, "paid"), (2, 2500, "paid")]


async def test_a_charge_on_a_rail_that_is_not_loaded_gets_no_answer_and_the_log_says_which_setting_is_missing(
    own: Own,
) -> None:
    with pytest.raises(
        RailUnavailable, match="the card rail gone is not loaded; name it in CUOTA_CARD_RAILS_KEPT"
    ):
        await own.context.rails.card.charge(a_charge("gone:card_1"))


async def test_a_token_that_was_stored_before_rails_had_names_belongs_to_the_active_rail(own: Own) -> None:
    created = await own.auto_merchant.create("100.00")
    await complete(own.service, own.auto_merchant.merchant_id, created)
    order_id = UUID(created["orderId"])
    async with own.owner() as owner:
        await owner.execute("UPDATE charges SET card_token = replace(card_token, 'sandbox:', '')")
    at = (await agreed(own, order_id)).plan[1].charge_at
    assert at is not None
    set_clock(own, at)
    await settle_all_due(own.context)
    assert await charged(own) == [(1, 2500, "paid"), (2, 2500, "paid")]


class TellsReference(SandboxCardRail):
    """A processor that returns the card network's identifier."""

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        return replace(await super().charge(asked), network_reference=f"nt-{asked.key}")


async def test_the_card_network_s_identifier_is_stored_with_the_charge(own: Own) -> None:
    created = await own.auto_merchant.create("100.00")
    rail = CardRails(TellsReference(*rail_parts(own.context.pool, now=own.context.now)))
    context = replace(own.context, rails=replace(own.context.rails, card=rail))
    service = replace(own.service, context=context)
    await complete(service, own.auto_merchant.merchant_id, created)
    async with own.owner() as owner:
        rows = await owner.fetch("SELECT charge_id, network_reference FROM charges")
    assert [row["network_reference"] for row in rows] == [f"nt-{row['charge_id']}" for row in rows]
    assert len(rows) == 1
