"""Runs the background work for one merchant's events, for tests that share their service with others."""

from __future__ import annotations

from cuota.db.webhook import endpoints
from cuota.db.webhook.events import OWN_ADDRESS
from cuota.flows.webhook.deliver_webhooks import Courier, live_secrets, publish_events
from cuota.rails.http import GuardedClient
from support.makers import Merchant


async def deliver(merchant: Merchant) -> None:
    """Publish this merchant's events, and deliver what is due. All answers are recorded when the function returns.

    Other tests' merchants have receivers that no longer exist, and thousands of events for them, so only this
    merchant's events are sent.
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
    """Return the merchant's own webhook secret, as it was shown when the merchant was created."""
    held = await endpoints.secrets_of(merchant.service.context.pool, merchant.merchant_id)
    (secret,) = live_secrets(merchant.service.context, merchant.merchant_id, OWN_ADDRESS, held)
    return secret
