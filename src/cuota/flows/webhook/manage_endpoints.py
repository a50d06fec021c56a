"""Registers, changes, pauses, tests and removes webhook endpoints, and rotates their secrets."""

from __future__ import annotations

import base64
import secrets as random_secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.instant import timestamp
from cuota.core.order.event import TEST_EVENT
from cuota.core.refusal import Code, Refused
from cuota.core.webhook.delivery import Attempt
from cuota.db.order.documents import encode
from cuota.db.webhook import deliveries, endpoints
from cuota.db.webhook.endpoints import Endpoint
from cuota.flows.context import Context, utc_now
from cuota.flows.webhook.deliver_webhooks import signed
from cuota.rails.http import GuardedClient

MOST_ENDPOINTS = 50
OLD_SECRET_LIVES = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Change:
    """A merchant's changes. None keeps a value."""

    url: str | None = None
    description: str | None = None
    paused: bool | None = None


def endpoint_not_found() -> Refused:
    """Return the refusal for an unknown id, which is the same for another merchant's endpoint."""
    return Refused(Code.NOT_FOUND, "There is no such webhook endpoint. GET /webhook-endpoints lists yours.")


def _new_secret() -> str:
    return f"whsec_{base64.b64encode(random_secrets.token_bytes(32)).decode()}"


async def register(context: Context, merchant_id: UUID, url: str, description: str) -> tuple[Endpoint, str]:
    """Add an endpoint. Return it with its secret, which is never shown again."""
    endpoint_id, secret = context.new_id(), _new_secret()
    sealed = context.vault.encrypt(secret, f"endpoint-secret:{endpoint_id}")
    made = Endpoint(merchant_id, endpoint_id, url, description, "active", sealed, None, None, context.now())
    # Registrations of one merchant wait for this lock before they take a database session.
    async with (
        context.lock(merchant_id),
        context.pool.session() as connection,
        connection.transaction(),
    ):
        added = await endpoints.insert(connection, made, MOST_ENDPOINTS)
    if not added:
        raise Refused(
            Code.VALIDATION_FAILED, f"There are {MOST_ENDPOINTS} endpoints already. Remove one first."
        )
    return made, secret


async def find(context: Context, merchant_id: UUID, endpoint_id: UUID) -> Endpoint:
    """Return the endpoint with this id; raise Refused(not_found)."""
    found = await endpoints.read(context.pool, merchant_id, endpoint_id)
    if found is None:
        raise endpoint_not_found()
    return found


async def change(context: Context, merchant_id: UUID, endpoint_id: UUID, asked: Change) -> Endpoint:
    """Change, pause or resume an endpoint. Pending deliveries go to the new address; a paused endpoint loses no event."""

    def to(found: Endpoint) -> Endpoint:
        return replace(
            found,
            url=found.url if asked.url is None else asked.url,
            description=found.description if asked.description is None else asked.description,
            state=found.state if asked.paused is None else "paused" if asked.paused else "active",
        )

    return await _changed(context, merchant_id, endpoint_id, to)


async def _changed(
    context: Context, merchant_id: UUID, endpoint_id: UUID, to: Callable[[Endpoint], Endpoint]
) -> Endpoint:
    """Read, change and write under the row's lock, so that a change never restores a secret that was just rotated."""
    async with context.pool.session() as connection, connection.transaction():
        found = await endpoints.lock(connection, merchant_id, endpoint_id)
        if found is None:
            raise endpoint_not_found()
        changed = to(found)
        await endpoints.update(connection, changed)
    return changed


async def rotate(
    context: Context,
    merchant_id: UUID,
    endpoint_id: UUID,
    old_lives: timedelta = OLD_SECRET_LIVES,
    *,
    again: bool = False,
) -> tuple[Endpoint, str]:
    """Create a new secret.

    The old secret also signs until `old_lives` has passed. With `again`, the new secret replaces the last new one, and
    the old secret stays valid as before.
    """
    secret = _new_secret()
    sealed = context.vault.encrypt(secret, f"endpoint-secret:{endpoint_id}")
    ends_at: datetime = utc_now() + old_lives

    def to(found: Endpoint) -> Endpoint:
        if again:
            return replace(found, secret=sealed)
        return replace(found, secret=sealed, old_secret=found.secret, old_secret_ends_at=ends_at)

    return await _changed(context, merchant_id, endpoint_id, to), secret


async def remove(context: Context, merchant_id: UUID, endpoint_id: UUID) -> None:
    """Remove an endpoint. Its pending deliveries are parked, and its attempts stay readable."""
    await _changed(context, merchant_id, endpoint_id, lambda found: replace(found, state="deleted"))
    await deliveries.park(context.pool, merchant_id, endpoint_id, context.now())


async def send_test(context: Context, client: GuardedClient, merchant_id: UUID, endpoint_id: UUID) -> Attempt:
    """Send a `webhook.test` event now and return the attempt. The test is in no feed and is not retried."""
    found = await find(context, merchant_id, endpoint_id)
    identity, now = f"evt_test_{context.new_id().hex}", context.now()
    empty = dict.fromkeys(
        ("orderId", "merchantReference", "currency", "amount", "operation", "sequence", "order")
    )
    body = encode(
        {
            "id": identity,
            "type": TEST_EVENT,
            "timestamp": timestamp(now),
            "merchantId": merchant_id,
            **empty,
            "success": True,
            "message": "This is a test.",
            "test": context.settings.sandbox,
            "metadata": {},
        }
    )
    held = await endpoints.secrets_of(context.pool, merchant_id)
    headers = signed(context, merchant_id, endpoint_id, held, identity, body)
    return await client.post(found.url, headers, body)
