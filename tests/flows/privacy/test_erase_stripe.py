"""The link from a consumer to a customer at Stripe is exported and erased with the consumer."""

from __future__ import annotations

from cuota.flows.privacy.erase_consumer import erase_consumer
from cuota.flows.privacy.export_consumer import export_consumer
from support.flows.people import PHONE, bought, paid_off
from support.own_service import Own


async def test_which_customer_at_stripe_a_person_is_can_be_exported_and_erased(own: Own) -> None:
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
