"""The sandbox's card network locks a card before its clearings, in every statement. So no two statements deadlock."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from cuota.flows.checkout.clear_card import network_of
from cuota.rails.card_network import Clearing
from support.db.locks import holder
from support.own_service import Own
from support.virtual_card import virtual_order


@pytest.mark.parametrize("end", ["done", "dropped"])
async def test_the_end_of_a_clearing_waits_for_the_card_and_holds_no_clearing_meanwhile(
    own: Own, end: str
) -> None:
    """A new clearing with the same reference holds the card, and then waits for the clearing that ends."""
    network = network_of(own.context)
    virtual = await virtual_order(own.merchant)
    allowed = UUID((await virtual.authorize(await virtual.card(), "100.00"))["authorizationId"])
    ids = own.merchant.merchant_id, virtual.order_id
    clearing = Clearing(uuid4(), allowed, "capture", "ship-1", 6000, "pending", uuid4(), *ids)
    assert await network.begin(clearing, own.context.now())
    async with holder(own.where) as other:
        await other.run("SELECT FROM issuing_simulator.cards FOR UPDATE")
        ending = asyncio.ensure_future(getattr(network, end)(clearing))
        await other.until_waits(ending)
        await other.run("SELECT FROM issuing_simulator.clearings FOR UPDATE NOWAIT")
    await ending
    book = await virtual.book()
    assert (book["held"], book["captured"]) == (0, 6000 if end == "done" else 0)
