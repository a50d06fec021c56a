"""The rules for every rail."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from cuota.core.checkout.card import read_card
from cuota.core.order.order import Status
from cuota.db.order import orders
from cuota.flows.checkout.leave_checkout import lapse_order
from cuota.flows.checkout.take_step import Problem, propose
from cuota.flows.context import utc_now
from cuota.rails.card.protocol import Card, CardAnswer, CardHolder, ChargeRequest
from cuota.rails.card.rails import CardRails
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.rails.load import NoSuchRail, load
from cuota.rails.unavailable import RailUnavailable
from support.card import pay
from support.makers import Merchant, checkout
from support.rails.parts import a_charge, rail_parts


class Hanging(SandboxCardRail):
    """A rail that never answers."""

    async def keep(self, token: str, holder: CardHolder) -> Card:
        del token, holder
        await asyncio.Event().wait()
        raise AssertionError

    async def find_charge(self, asked: ChargeRequest) -> CardAnswer | None:
        del asked
        await asyncio.Event().wait()
        return None


async def test_a_rail_that_hangs_counts_as_unavailable(merchant: Merchant) -> None:
    rail = CardRails(Hanging(*rail_parts(merchant.service.context.pool)), seconds=0.05)
    with pytest.raises(RailUnavailable, match="no answer within"):
        await rail.find_charge(a_charge())


async def test_a_card_that_cannot_be_stored_is_reported_and_not_charged(merchant: Merchant) -> None:
    created = await merchant.create()
    seen, _ = await checkout(merchant.service, merchant.merchant_id, created)
    context = merchant.service.context
    hanging = replace(context.rails, card=CardRails(Hanging(*rail_parts(context.pool)), seconds=0.05))
    assert seen.session.profile is not None
    terms = propose(context, seen, seen.session.profile)
    card = read_card("4242 4242 4242 4242", "12/39", "123", utc_now().date())
    with pytest.raises(Problem, match="Nothing was charged"):
        await pay(replace(context, rails=hanging), seen, card, terms.agreement.hash)
    assert (await merchant.read(created))["orderStatus"] == "Created"


@pytest.mark.parametrize(
    ("card", "message", "named"),
    [
        ("cuota.rails.card.sandbox.SandboxCardRail", "sandbox", "CUOTA_CARD_RAIL"),
        ("support.rails.parts.RealCardRail", "cuota.rails.message.SandboxMessageRail", "CUOTA_MESSAGE_RAIL"),
    ],
)
async def test_production_refuses_a_simulator_under_any_name(
    merchant: Merchant, card: str, message: str, named: str
) -> None:
    with pytest.raises(NoSuchRail, match=named):
        load(*rail_parts(merchant.service.context.pool, sandbox=False, card=card, message=message))


@pytest.mark.parametrize("required", [True, False])
async def test_production_takes_the_simulated_screening_only_if_no_approval_depends_on_it(
    merchant: Merchant, *, required: bool
) -> None:
    parts = rail_parts(
        merchant.service.context.pool,
        sandbox=False,
        card="support.rails.parts.RealCardRail",
        message="support.rails.parts.RealMessageRail",
        screening="cuota.rails.screening.sandbox.SandboxScreeningRail",
        onboarding_required=required,
    )
    if required:
        with pytest.raises(NoSuchRail, match="CUOTA_SCREENING_RAIL: production needs a real rail"):
            load(*parts)
    else:
        assert load(*parts).screening is not None


async def test_an_order_that_has_time_left_does_not_lapse_on_an_old_look(merchant: Merchant) -> None:
    created = await merchant.create()
    await lapse_order(merchant.service.context, merchant.merchant_id, UUID(created["orderId"]))
    found = await orders.read_with_plan(
        merchant.service.context.pool, merchant.merchant_id, UUID(created["orderId"])
    )
    assert found is not None
    assert found.order.status is Status.CREATED
