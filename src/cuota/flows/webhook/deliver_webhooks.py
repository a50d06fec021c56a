"""Webhooks: publish events, claim deliveries, sign and send them, and record the answers."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Callable
from uuid import UUID

from cuota.core.webhook.delivery import Attempt
from cuota.core.webhook.signature import pay_signature, webhook_signature
from cuota.db.apart import LateMerchants
from cuota.db.vault import Vault
from cuota.db.webhook import deliveries, endpoints, events
from cuota.db.webhook.claims import Claim
from cuota.db.webhook.deliveries import Claimed, Result
from cuota.db.webhook.endpoints import Pair, Secrets
from cuota.db.webhook.events import OWN_ADDRESS, AnyFacts
from cuota.db.webhook.lanes import Lane, lanes_due
from cuota.db.workers import Worker
from cuota.flows.context import Context, utc_now
from cuota.flows.webhook.limit_receivers import ReceiverLimits
from cuota.flows.webhook.pace_webhooks import Pace
from cuota.flows.webhook.record_attempts import AttemptRecorder
from cuota.flows.webhook.show_event import event_body, event_id
from cuota.rails.http import GuardedClient

PUBLISHED_AT_ONCE = 500
# A limit, so that sending webhooks never uses all the database sessions that requests need.
MERCHANTS_AT_ONCE = 3
log = logging.getLogger("cuota.webhooks")


async def publish_events(context: Context) -> int:
    """Put new events into the feeds, and add a delivery for each receiver. Return how many events were published."""

    async def publish(merchant_id: UUID) -> int:
        return await events.publish(context.pool, merchant_id, context.now(), PUBLISHED_AT_ONCE)

    return await context.each_apart("publishing", await events.waiting(context.pool), publish)


class Courier:
    """Sends due deliveries.

    Each receiver has its own queue and its own limit, so a slow receiver delays only its own deliveries.
    """

    def __init__(
        self,
        context: Context,
        client: GuardedClient,
        worker: Worker | None = None,
        freed: Callable[[], None] = lambda: None,
        pace: Pace | None = None,
    ) -> None:
        """`worker` is the worker that claims deliveries.

        `freed` is called when a recorded result has made a later event due.
        """
        self._context = context
        self._client = client
        self._worker = worker
        self._recorder = AttemptRecorder(context.pool, freed)
        self._under_way: dict[asyncio.Task[None], Claimed] = {}
        self._late: defaultdict[UUID, LateMerchants] = defaultdict(LateMerchants)
        self._pace = pace or Pace()
        self._limits = ReceiverLimits(self._pace.at_once, self._pace.part)

    async def send_due(self) -> int:
        """Claim due deliveries and start sending them; do not wait for answers. Return how many were claimed or postponed."""
        places = asyncio.Semaphore(MERCHANTS_AT_ONCE)
        due = await self._lanes_due()

        async def send(merchant_id: UUID) -> int:
            async with places:
                return await self._send_lanes(merchant_id, due[merchant_id])

        # What fails for one merchant does not stop the others.
        sends = (self._late[each].each("webhooks", [each], send) for each in due)
        return sum(await asyncio.gather(*sends))

    def under_way(self) -> list[Claim]:
        """Return the deliveries that this process has claimed and not yet recorded."""
        return [item.claim for item in self._under_way.values()]

    async def finish(self, seconds: float) -> None:
        """Wait up to `seconds` for the deliveries in progress, then cancel the rest.

        Their leases end, and they are retried.
        """
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._recorder.finish()

    async def _lanes_due(self) -> dict[UUID, list[Lane]]:
        lanes = await lanes_due(self._context.pool, self._context.now(), self._pace.most_lanes)
        # Shuffle the merchants and their queues, so that different ones are served each time if the limits do not allow all.
        merchants = list({lane.merchant_id for lane in lanes})
        random.shuffle(merchants)
        random.shuffle(lanes)
        due: dict[UUID, list[Lane]] = defaultdict(list, {each: [] for each in merchants})
        for lane in lanes:
            due[lane.merchant_id].append(lane)
        return due

    async def _send_lanes(self, merchant_id: UUID, lanes: list[Lane]) -> int:
        context = self._context
        room = self._limits.room(lanes)
        if not room:
            return 0
        # All three statements use one session. Otherwise claimed deliveries might wait for a free session until their
        # lease ends.
        async with context.pool.session() as session:
            name = self._worker.name if self._worker else None
            claimed, aside = await deliveries.claim(session, merchant_id, context.now(), room, name)
            if claimed:
                orders = list({item.order_id for item in claimed})
                facts = await events.facts(session, merchant_id, orders)
                receivers = {item.receiver for item in claimed}
                secrets = await endpoints.secrets_of(session, merchant_id, receivers)
        if claimed:
            bodies: dict[str, bytes] = {}
            for item in claimed:
                task = asyncio.create_task(self._send(item, facts, secrets, bodies))
                self._under_way[task] = item
                self._limits.begin(item.lane)
                task.add_done_callback(self._ended(item.lane))
        return len(claimed) + aside

    def _ended(self, lane: Lane) -> Callable[[asyncio.Task[None]], None]:
        def ended(task: asyncio.Task[None]) -> None:
            self._under_way.pop(task, None)
            self._limits.end(lane)
            if not task.cancelled() and task.exception() is not None:
                log.error("delivery failed", exc_info=task.exception())

        return ended

    async def _send(
        self, item: Claimed, facts: dict[UUID, AnyFacts], secrets: Secrets, bodies: dict[str, bytes]
    ) -> None:
        """Send one delivery. `bodies` caches event bodies, because many receivers get the same event."""
        context = self._context
        identity = event_id(item.order_id, item.sequence)
        try:
            if identity not in bodies:
                bodies[identity] = event_body(
                    facts[item.order_id], item.sequence, sandbox=context.settings.sandbox
                )
            body = bodies[identity]
            headers = signed(context, item.merchant_id, item.receiver, secrets, identity, body)
        except Exception:
            # An event that cannot be written does not stop other deliveries. It is retried on the usual schedule and can
            # be replayed.
            log.exception("webhook not made", extra={"facts": {"eventId": identity}})
            attempt = Attempt(None, 0, "the event could not be written")
        else:
            attempt = await self._client.post(item.url, headers, body, seconds=self._pace.seconds(item.lane))
            self._limits.learn(item.lane, attempt)
            self._pace.learn(item.lane, attempt)
        now = context.now()
        state, try_at = "delivered", None
        if not attempt.acknowledged:
            wait = self._pace.wait(item.failed + 1, attempt, now)
            state, try_at = ("parked", None) if wait is None else ("pending", now + wait)
        await self._recorder.record(Result(item, attempt, now, state, try_at))


def signed(
    context: Context, merchant_id: UUID, receiver: UUID, secrets: Secrets, identity: str, body: bytes
) -> list[tuple[str, str]]:
    """Return the headers of one attempt, signed in two ways.

    One is the Standard Webhooks signature with every valid secret; the other is the SDK's signature of the raw body.
    """
    # Receivers compare this timestamp with their own clocks and reject a difference of five minutes, so it is the real
    # time of sending. The body's `timestamp` is the time of the event on the service's clock.
    timestamp = int(utc_now().timestamp())
    keys = live_secrets(context, merchant_id, receiver, secrets)
    # This header has room for one signature only. It uses the previous secret while that is valid, so a receiver has a
    # day to change to the new secret.
    signing = live_signing(context, merchant_id, secrets)[-1]
    return [
        ("Content-Type", "application/json"),
        ("User-Agent", "Cuota-Webhooks/1"),
        ("webhook-id", identity),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", webhook_signature(keys, identity, timestamp, body)),
        ("X-Pay-Signature", pay_signature(signing, body)),
    ]


def live_secrets(context: Context, merchant_id: UUID, receiver: UUID, secrets: Secrets) -> list[str]:
    """Return the webhook secrets that a receiver may verify with.

    An endpoint has its own; a callback URL uses the merchant's.
    """
    if receiver == OWN_ADDRESS or receiver not in secrets.endpoints:
        return _live(context.vault, secrets.webhook, f"webhook-secret:{merchant_id}")
    return _live(context.vault, secrets.endpoints[receiver], f"endpoint-secret:{receiver}")


def live_signing(context: Context, merchant_id: UUID, secrets: Secrets) -> list[str]:
    """Return the merchant's signing secret, followed by the previous one while the previous one is still valid."""
    return _live(context.vault, secrets.signing, f"signing-secret:{merchant_id}")


def _live(vault: Vault, pair: Pair, bound_to: str) -> list[str]:
    """Decrypt a secret, followed by the previous one while the previous one is still valid."""
    secret, old, old_ends = pair
    held = [vault.decrypt(secret, bound_to)]
    if old is not None and old_ends is not None and utc_now() < old_ends:
        held.append(vault.decrypt(old, bound_to))
    return held
