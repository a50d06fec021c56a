"""Only the browser that paid sees the virtual card, even if another browser entered the one-time code in the same
checkout."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from cuota.core.checkout.card import read_card
from cuota.core.consumer import Profile
from cuota.core.refusal import Refused
from cuota.flows.checkout.issue_card import reveal_card
from cuota.flows.checkout.take_step import propose
from cuota.rails.issuing import IssuingRail, VirtualCard
from cuota.rails.unavailable import RailUnavailable
from support.card import pay
from support.makers import ADDRESS, Merchant, checkout, read_checkout
from support.time.machine import set_clock
from support.virtual_card import opened, paid, virtual_order

STRANGER = Profile("Alex", "Stone", "alex@mail.example", ADDRESS)


async def test_a_browser_that_entered_the_code_but_did_not_pay_never_gets_the_card(
    merchant: Merchant,
) -> None:
    service, created = merchant.service, await opened(merchant)
    _, strangers = await checkout(service, merchant.merchant_id, created, STRANGER)
    virtual = await paid(merchant, created)

    async def stranger() -> object:
        seen = await read_checkout(service.context, merchant.merchant_id, virtual.order_id, strangers)
        assert seen.verified
        assert seen.session.profile == STRANGER
        return await reveal_card(service.context, seen)

    # The stranger requests the card first, and several times.
    assert await asyncio.gather(*(stranger() for _ in range(8))) == [None] * 8
    assert await virtual.card()
    assert await stranger() is None


async def test_another_browser_of_the_same_person_does_not_get_the_card(merchant: Merchant) -> None:
    service, created = merchant.service, await opened(merchant)
    phone = "2125550142"
    _, other = await checkout(service, merchant.merchant_id, created, phone=phone)
    paying, secret = await checkout(service, merchant.merchant_id, created, phone=phone)
    assert paying.session.profile is not None
    terms = propose(service.context, paying, paying.session.profile)
    card = read_card("4242 4242 4242 4242", "12/39", "123", datetime.now(UTC).date())
    order = await pay(service.context, paying, card, terms.agreement.hash)
    ids = (merchant.merchant_id, order.order_id)
    assert await reveal_card(service.context, await read_checkout(service.context, *ids, other)) is None
    assert await reveal_card(service.context, await read_checkout(service.context, *ids, secret)) is not None


async def test_after_a_declined_card_the_browser_that_pays_gets_the_virtual_card(merchant: Merchant) -> None:
    service, created = merchant.service, await opened(merchant)
    first, first_secret = await checkout(service, merchant.merchant_id, created)
    assert first.session.profile is not None
    terms = propose(service.context, first, first.session.profile)
    declined = read_card("4000 0000 0000 0002", "12/39", "123", datetime.now(UTC).date())
    await pay(service.context, first, declined, terms.agreement.hash)
    virtual = await paid(merchant, created)
    gone = await read_checkout(service.context, merchant.merchant_id, virtual.order_id, first_secret)
    assert await reveal_card(service.context, gone) is None
    assert await virtual.card()


class Down:
    """An issuer that makes cards, but does not show them while it is down."""

    def __init__(self, rail: IssuingRail) -> None:
        self.rail = rail
        self.issue, self.hide, self.limit = rail.issue, rail.hide, rail.limit

    async def reveal(self, key: UUID) -> VirtualCard | None:
        raise RailUnavailable("down")


async def test_the_time_to_see_the_card_does_not_run_while_the_issuer_is_down(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    virtual = await virtual_order(merchant)
    context = merchant.service.context
    assert context.rails.issuing is not None
    down = replace(context, rails=replace(context.rails, issuing=Down(context.rails.issuing)))
    with pytest.raises(Refused):
        await reveal_card(down, await virtual.again())
    set_clock(monkeypatch, timedelta(minutes=11))
    assert await virtual.card()
    set_clock(monkeypatch, timedelta(minutes=22))
    assert await virtual.reveal() is None
