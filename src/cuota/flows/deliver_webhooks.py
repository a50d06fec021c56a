"""Webhooks: events are published, claimed, signed both ways, sent, and the answer is recorded."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable
from uuid import UUID

from cuota.core.delivery import next_try
from cuota.core.signature import pay_signature, webhook_signature
from cuota.db import deliveries, endpoints, events
from cuota.db.deliveries import LEASE, Claimed
from cuota.db.endpoints import Secrets
from cuota.db.events import OWN_ADDRESS, Facts
from cuota.db.vault import Vault
from cuota.flows.context import Context
from cuota.flows.show_event import event_body, event_id
from cuota.rails.http import GuardedClient

PUBLISHED_AT_ONCE = 500
EACH_HOST = 16
MOST_UNDER_WAY = 400
log = logging.getLogger("cuota.webhooks")


async def publish_events(context: Context) -> int:
    """Put what has happened into the feeds and address it to its receivers; answers how much."""
    published = 0
    for merchant_id in await events.waiting(context.pool):
        published += await events.publish(context.pool, merchant_id, context.now(), PUBLISHED_AT_ONCE)
    return published


class Courier:
    """Sends what is due. A slow receiver holds up only its own: each host has a few at a time, claimed in turn."""

    def __init__(self, context: Context, client: GuardedClient) -> None:
        self._context = context
        self._client = client
        self._under_way: set[asyncio.Task[None]] = set()
        self._hosts: Counter[str] = Counter()

    async def send_due(self) -> int:
        """Claim what is due and start sending it; answers how many were claimed. Does not wait for answers."""
        claimed = 0
        for merchant_id in await deliveries.merchants_due(self._context.pool, self._context.now()):
            if len(self._under_way) >= MOST_UNDER_WAY:
                break
            claimed += await self._send_merchant(merchant_id)
        return claimed

    async def finish(self, seconds: float) -> None:
        """Let what is under way end; what has not after so many seconds is given up, and tried again by its lease."""
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _send_merchant(self, merchant_id: UUID) -> int:
        context, now = self._context, self._context.now()
        busy = [host for host, count in self._hosts.items() if count >= EACH_HOST]
        claimed = await deliveries.claim(context.pool, merchant_id, now, now + LEASE, busy, EACH_HOST)
        if not claimed:
            return 0
        facts = await events.facts(context.pool, merchant_id, list({item.order_id for item in claimed}))
        secrets = await endpoints.secrets_of(context.pool, merchant_id)
        for item in claimed:
            task = asyncio.create_task(self._send(item, facts[item.order_id], secrets))
            self._under_way.add(task)
            self._hosts[item.host] += 1
            task.add_done_callback(self._ended(item.host))
        return len(claimed)

    def _ended(self, host: str) -> Callable[[asyncio.Task[None]], None]:
        def ended(task: asyncio.Task[None]) -> None:
            self._under_way.discard(task)
            self._hosts[host] -= 1
            if not self._hosts[host]:
                del self._hosts[host]
            if not task.cancelled() and task.exception() is not None:
                log.error("delivery failed", exc_info=task.exception())

        return ended

    async def _send(self, item: Claimed, facts: Facts, secrets: Secrets) -> None:
        context = self._context
        body = event_body(facts, item.sequence, sandbox=context.settings.sandbox)
        identity = event_id(item.order_id, item.sequence)
        headers = signed(context, item.merchant_id, item.receiver, secrets, identity, body)
        attempt = await self._client.post(item.url, headers, body)
        now = context.now()
        state, try_at = "delivered", None
        if not attempt.acknowledged:
            wait = next_try(item.tries, attempt, random.random())  # noqa: S311 - jitter, no secret
            state, try_at = ("parked", None) if wait is None else ("pending", now + wait)
        await deliveries.record(context.pool, item, attempt, now, state, try_at)


def signed(
    context: Context, merchant_id: UUID, receiver: UUID, secrets: Secrets, identity: str, body: bytes
) -> list[tuple[str, str]]:
    """The headers of one try: Standard Webhooks with every live secret, and the SDK's formula over the raw body."""
    timestamp = int(context.now().timestamp())
    keys = live_secrets(context, merchant_id, receiver, secrets)
    signing = context.vault.decrypt(secrets.signing_secret, f"signing-secret:{merchant_id}")
    return [
        ("Content-Type", "application/json"),
        ("User-Agent", "Cuota-Webhooks/1"),
        ("webhook-id", identity),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", webhook_signature(keys, identity, timestamp, body)),
        ("X-Pay-Signature", pay_signature(signing, body)),
    ]


def live_secrets(context: Context, merchant_id: UUID, receiver: UUID, secrets: Secrets) -> list[str]:
    """The webhook secrets that a receiver may check with: the endpoint's, or the merchant's for an order's address."""
    vault: Vault = context.vault
    if receiver == OWN_ADDRESS or receiver not in secrets.endpoints:
        return [vault.decrypt(secrets.webhook_secret, f"webhook-secret:{merchant_id}")]
    secret, old, old_ends = secrets.endpoints[receiver]
    held = [vault.decrypt(secret, f"endpoint-secret:{receiver}")]
    if old is not None and old_ends is not None and context.now() < old_ends:
        held.append(vault.decrypt(old, f"endpoint-secret:{receiver}"))
    return held
