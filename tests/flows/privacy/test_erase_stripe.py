"""The link from a consumer to a customer at Stripe is exported and erased with the consumer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from cuota.flows.privacy.erase_consumer import erase_consumer
from cuota.flows.privacy.export_consumer import export_consumer
from cuota.flows.privacy.forget_cards import forget_cards
from cuota.rails.card.rails import CardRails
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.rails.unavailable import RailUnavailable
from support.flows.people import PHONE, bought, paid_off
from support.own_service import Own
from support.rails.parts import rail_parts


async def test_the_stripe_customer_id_of_a_person_can_be_exported_and_erased(own: Own) -> None:
    await bought(own)
    await paid_off(own)
    await own.context.pool.execute(
        "INSERT INTO card_processor.customers (consumer_id, account, customer) SELECT consumer_id, 'a', 'cus_mina' FROM consumers"
    )
    found = await export_consumer(own.context, PHONE)
    (exported,) = found["card_processor.customers"]
    assert exported["customer"] == "cus_mina"
    assert (await erase_consumer(own.context, PHONE, dry_run=False)).done
    assert await own.context.pool.fetch("SELECT FROM card_processor.customers") == []


class DownFirst(SandboxCardRail):
    """The simulated processor. Its first calls to `forget` get no answer."""

    down = 1

    async def forget(self, consumer_id: UUID) -> None:
        if self.down:
            self.down -= 1
            raise RailUnavailable("the line is down")
        await super().forget(consumer_id)


async def known_cards(own: Own) -> int:
    async with own.owner() as owner:
        return int(await owner.fetchval("SELECT count(*) FROM card_simulator.cards WHERE NOT forgotten"))


async def test_a_processor_that_does_not_answer_is_called_again_until_it_has_deleted_the_person(
    own: Own,
) -> None:
    await bought(own)
    refused = await erase_consumer(own.context, PHONE, dry_run=False)
    assert (refused.done, await known_cards(own)) == (False, 1)  # the plan is still unpaid
    await paid_off(own)
    rail = DownFirst(*rail_parts(own.context.pool))
    context = replace(own.context, rails=replace(own.context.rails, card=CardRails(rail)))
    assert not (await erase_consumer(context, PHONE, dry_run=True)).done
    assert await own.context.pool.fetch("SELECT FROM card_erasures") == []
    erased = await erase_consumer(context, PHONE, dry_run=False)
    assert (erased.done, erased.waiting, await known_cards(own)) == (True, ["sandbox"], 1)
    assert await forget_cards(context) == 0  # the deletion is not due yet
    async with own.owner() as owner:
        soon = await owner.fetchval("SELECT try_at - now() FROM card_erasures")
        assert timedelta(0) < soon <= timedelta(minutes=1)
        await owner.execute("UPDATE card_erasures SET try_at = now()")
    assert await forget_cards(context) == 1
    assert await known_cards(own) == 0
    assert await own.context.pool.fetch("SELECT FROM card_erasures") == []
