"""What the background work does with one merchant's events, for tests that share their service with others."""

from __future__ import annotations

from cuota.db.webhook import endpoints
from cuota.db.webhook.events import OWN_ADDRESS
from cuota.flows.webhook.deliver_webhooks import Courier, live_secrets, publish_events
from cuota.rails.http import GuardedClient
from support.makers import Merchant


async def deliver(merchant: Merchant) -> None:
    """Publish, and deliver what is due for this merchant; answers are recorded when it returns.

    For this one alone: other tests' merchants have receivers that are gone, and thousands of events for them.
    """
    context = merchant.service.context
    await publish_events(context)
    client = GuardedClient(loopback=True)
    courier = Courier(context, client)
    while await _send(courier, merchant):
        await courier.finish(20)
    await client.close()


async def _send(courier: Courier, merchant: Merchant) -> int:
    due = await courier._lanes_due()
    return await courier._send_lanes(merchant.merchant_id, due[merchant.merchant_id])


async def webhook_secret(merchant: Merchant) -> str:
    """The merchant's own webhook secret, as its creation showed it."""
    held = await endpoints.secrets_of(merchant.service.context.pool, merchant.merchant_id)
    (secret,) = live_secrets(merchant.service.context, merchant.merchant_id, OWN_ADDRESS, held)
    return secret
