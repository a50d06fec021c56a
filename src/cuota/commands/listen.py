"""`cuota listen`: prints a merchant's events as they happen, and can forward them, signed, to a local address."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import Any

from cuota.commands.place import require_service
from cuota.core.merchant import Merchant
from cuota.core.webhook.delivery import Attempt
from cuota.db.webhook import endpoints, events
from cuota.db.webhook.events import OWN_ADDRESS, FeedPosition
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.webhook.deliver_webhooks import signed
from cuota.flows.webhook.show_event import event_body, event_id
from cuota.rails.http import GuardedClient

POLL_SECONDS = 0.3
AT_ONCE = 50
# The command looks about once a second whether the service still runs.
POLLS_PER_CHECK = 3
WHY = "cuota listen shows the events of a running service"


async def listen(
    context: Context, name: str, forward: str | None, *, as_json: bool, from_start: bool
) -> None:
    """Print events until the process is interrupted or the service stops, and forward each to the address `forward` if there is one.

    Unlike webhooks, forwarding may always go to a loopback address: the person who typed the address is a developer on this
    machine. Raises BadMerchant if there is no merchant `name`, and NoService once all events of a stopped service are printed.
    """
    merchant = await find_merchant(context, name)
    position = 0 if from_start else await events.last_position(context.pool, merchant.merchant_id)
    client, idle = GuardedClient(loopback=True, connections=4), 0
    try:
        while True:
            places = await events.page(context.pool, merchant.merchant_id, position, AT_ONCE)
            for place in places:
                await _one(context, merchant, place, client, forward, as_json=as_json)
                position = place.position
            idle = 0 if places else idle + 1
            if idle % POLLS_PER_CHECK == 1:
                await require_service(context.settings, context.pool, WHY)
            if not places:
                await asyncio.sleep(POLL_SECONDS)
    finally:
        await client.close()


async def _one(
    context: Context,
    merchant: Merchant,
    place: FeedPosition,
    client: GuardedClient,
    forward: str | None,
    *,
    as_json: bool,
) -> None:
    facts = await events.facts(context.pool, merchant.merchant_id, [place.order_id])
    body = event_body(facts[place.order_id], place.sequence, sandbox=context.settings.sandbox)
    attempt = await _forward(context, merchant, place, client, forward, body) if forward else None
    if as_json:
        print(body.decode(), flush=True)
        return
    event = json.loads(body, parse_float=Decimal)
    forwarded = "" if attempt is None else f"  -> {attempt.status or attempt.error} in {attempt.ms} ms"
    print(f"{event['timestamp']}  {event['type']:22} {_about(event)}{forwarded}", flush=True)


def _about(event: dict[str, Any]) -> str:
    """Return the amount and the id of the event's subject. A bank account has its last digits instead of an amount."""
    if "bankAccount" in event:
        return f"{'****' + event['bankAccount']['last4']:>10}  {event['bankAccount']['accountId']}"
    about, key = (event["payout"], "payoutId") if "payout" in event else (event, "orderId")
    return f"{Decimal(about['amount']):>10.2f}  {about[key]}"


async def _forward(
    context: Context, merchant: Merchant, place: FeedPosition, client: GuardedClient, url: str, body: bytes
) -> Attempt:
    secrets = await endpoints.secrets_of(context.pool, merchant.merchant_id)
    identity = event_id(place.order_id, place.sequence)
    headers = signed(context, merchant.merchant_id, OWN_ADDRESS, secrets, identity, body)
    return await client.post(url, headers, body)
