"""Webhook endpoints: register, change, pause, rotate the secret, test, remove.

Each change and its entry in the merchant's audit log are one transaction. Without a `cause`, the caller writes the entry.
"""

from __future__ import annotations

import base64
import secrets as random_secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from cuota.core.instant import timestamp
from cuota.core.order.event import TEST_EVENT
from cuota.core.refusal import Code, Refused
from cuota.core.webhook.delivery import Attempt
from cuota.db.order.documents import encode
from cuota.db.pool import Connection
from cuota.db.webhook import endpoints, replays
from cuota.db.webhook.endpoints import Endpoint
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.desk.record import AuditNote, Cause, record
from cuota.flows.lost_session import until_known
from cuota.flows.webhook.deliver_webhooks import signed
from cuota.rails.http import GuardedClient

MOST_ENDPOINTS = 50
# Removed endpoints stay in the table, because their attempts stay readable. Each publication of events reads the merchant's part of it.
MOST_ADDED = 1000
ADDED_WITHIN = timedelta(hours=24)
LONGEST_DESCRIPTION = 200
ADDED_BEFORE = "Your first click already added this endpoint. If you did not see its secret, open the endpoint and replace the secret."
UNKNOWN = (
    "The connection to the database was lost while the endpoint was being changed, so the result is unknown. "
    "List your webhook endpoints before you try again."
)
OLD_SECRET_LIVES = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Change:
    """A merchant's changes. None keeps a value."""

    url: str | None = None
    description: str | None = None
    paused: bool | None = None


class OldSecretWorks(Exception):
    """The secret was replaced before, and the one before that is valid until `ends_at`."""

    def __init__(self, ends_at: datetime) -> None:
        super().__init__()
        self.ends_at = ends_at


class NoOldSecret(Exception):
    """The endpoint has only one valid secret."""


def endpoint_not_found() -> Refused:
    """Return the refusal for an unknown id, which is the same for another merchant's endpoint."""
    return Refused(Code.NOT_FOUND, "There is no such webhook endpoint. GET /webhook-endpoints lists yours.")


def _new_secret() -> str:
    return f"whsec_{base64.b64encode(random_secrets.token_bytes(32)).decode()}"


async def register(
    context: Context,
    merchant_id: UUID,
    url: str,
    description: str,
    cause: Cause | None = None,
    endpoint_id: UUID | None = None,
) -> tuple[Endpoint, str]:
    """Add an endpoint. Return it with its secret, which is never shown again.

    `endpoint_id` is the id in a form. A second click on this form adds nothing, and raises BadChange.
    """
    endpoint_id, secret = endpoint_id or context.new_id(), _new_secret()
    sealed = context.vault.encrypt(secret, f"endpoint-secret:{endpoint_id}")
    made = Endpoint(merchant_id, endpoint_id, url, description, "active", sealed, None, None, context.now())

    async def add() -> str:
        # Registrations of one merchant wait for this lock before they take a database session.
        async with (
            context.lock(merchant_id),
            context.pool.session() as connection,
            connection.transaction(),
        ):
            await endpoints.lock_list(connection, merchant_id)
            found = await endpoints.read(connection, merchant_id, made.endpoint_id)
            if found is not None and found.secret == made.secret:
                # Our own earlier commit was applied, and we lost its result.
                return ""
            if problem := await _full(context, connection, merchant_id):
                return problem
            await endpoints.insert(connection, made)
            await _record(context, connection, "webhooks.add", None, made, cause)
        return ""

    try:
        problem = await until_known(context, add, UNKNOWN)
    except asyncpg.UniqueViolationError:
        raise BadChange(ADDED_BEFORE) from None
    if problem:
        raise Refused(Code.VALIDATION_FAILED, problem)
    return made, secret


async def _full(context: Context, connection: Connection, merchant_id: UUID) -> str:
    """Return why no endpoint can be added to the locked list, or an empty text."""
    held, lately = await endpoints.count(connection, merchant_id, context.now() - ADDED_WITHIN)
    if held >= MOST_ENDPOINTS:
        return f"There are {MOST_ENDPOINTS} endpoints already. Remove one first."
    if lately >= MOST_ADDED:
        return f"{MOST_ADDED:,} endpoints were registered in the last 24 hours. Change one of yours instead."
    return ""


async def find(context: Context, merchant_id: UUID, endpoint_id: UUID) -> Endpoint:
    """Return the endpoint with this id; raise Refused(not_found)."""
    found = await endpoints.read(context.pool, merchant_id, endpoint_id)
    if found is None:
        raise endpoint_not_found()
    return found


async def change(
    context: Context, merchant_id: UUID, endpoint_id: UUID, asked: Change, cause: Cause | None = None
) -> Endpoint:
    """Change, pause or resume an endpoint. Pending deliveries go to the new address; a paused endpoint loses no event."""

    def to(found: Endpoint) -> Endpoint:
        return replace(
            found,
            url=found.url if asked.url is None else asked.url,
            description=found.description if asked.description is None else asked.description,
            state=found.state if asked.paused is None else "paused" if asked.paused else "active",
        )

    return await _changed(context, merchant_id, endpoint_id, to, "webhooks.change", cause)


async def _changed(
    context: Context,
    merchant_id: UUID,
    endpoint_id: UUID,
    to: Callable[[Endpoint], Endpoint],
    action: str,
    cause: Cause | None,
) -> Endpoint:
    """Read, change and write under the row's lock, so that a change never restores a secret that was just rotated."""
    async with context.pool.session() as connection, connection.transaction():
        found = await endpoints.lock(connection, merchant_id, endpoint_id)
        if found is None:
            raise endpoint_not_found()
        changed = to(found)
        await endpoints.update(connection, changed)
        if changed.url != found.url:
            await endpoints.move(connection, changed)
        if changed.state == "deleted":
            await replays.park(connection, merchant_id, endpoint_id, context.now())
        if changed != found:
            await _record(context, connection, action, found, changed, cause)
    return changed


async def _record(
    context: Context,
    connection: Connection,
    action: str,
    before: Endpoint | None,
    after: Endpoint,
    cause: Cause | None,
) -> None:
    if cause is None:
        return
    note = AuditNote(
        action,
        f"Webhook endpoint {after.url}",
        cause.reason,
        before=None if before is None else _facts(before),
        after=_facts(after),
    )
    await record(context, after.merchant_id, cause.actor, note, connection)


def _facts(endpoint: Endpoint) -> dict[str, str]:
    return {"url": endpoint.url, "description": endpoint.description, "state": endpoint.state}


def old_secret_ends_at(endpoint: Endpoint) -> datetime | None:
    """Return when the endpoint's old secret ends, or None if only one secret is valid."""
    ends_at = endpoint.old_secret_ends_at
    return ends_at if endpoint.old_secret is not None and ends_at and ends_at > utc_now() else None


async def rotate(
    context: Context,
    merchant_id: UUID,
    endpoint_id: UUID,
    old_lives: timedelta = OLD_SECRET_LIVES,
    *,
    again: bool = False,
    once: bool = False,
    cause: Cause | None = None,
) -> tuple[Endpoint, str]:
    """Create a new secret.

    The old secret also signs until `old_lives` has passed. With `again`, the new secret replaces the last new one, and
    the old secret stays valid as before. It raises NoOldSecret if no old secret is valid. With `once`, raises OldSecretWorks while an
    earlier old secret is valid: the receiver may still need it.
    """
    secret = _new_secret()
    sealed = context.vault.encrypt(secret, f"endpoint-secret:{endpoint_id}")

    def to(found: Endpoint) -> Endpoint:
        if found.secret == sealed:
            # Our own earlier commit was applied, and we lost its result.
            return found
        lives_until = old_secret_ends_at(found)
        if again and lives_until is None:
            raise NoOldSecret
        if again:
            return replace(found, secret=sealed)
        if once and lives_until is not None:
            raise OldSecretWorks(lives_until)
        return replace(
            found, secret=sealed, old_secret=found.secret, old_secret_ends_at=utc_now() + old_lives
        )

    action = "webhooks.rotate-lost" if again else "webhooks.rotate"
    changed = await until_known(
        context, lambda: _changed(context, merchant_id, endpoint_id, to, action, cause), UNKNOWN
    )
    return changed, secret


async def end_old(context: Context, merchant_id: UUID, endpoint_id: UUID, cause: Cause | None = None) -> None:
    """End the endpoint's old secret now. Raises NoOldSecret if none is valid."""

    def to(found: Endpoint) -> Endpoint:
        if old_secret_ends_at(found) is None:
            raise NoOldSecret
        return replace(found, old_secret=None, old_secret_ends_at=None)

    await _changed(context, merchant_id, endpoint_id, to, "webhooks.end-old", cause)


async def remove(context: Context, merchant_id: UUID, endpoint_id: UUID, cause: Cause | None = None) -> None:
    """Remove an endpoint. Its pending deliveries are parked, and its attempts stay readable."""

    def to(found: Endpoint) -> Endpoint:
        return replace(found, state="deleted")

    await _changed(context, merchant_id, endpoint_id, to, "webhooks.remove", cause)


async def send_test(context: Context, merchant_id: UUID, endpoint_id: UUID) -> Attempt:
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
    held = await endpoints.secrets_of(context.pool, merchant_id, [endpoint_id])
    headers = signed(context, merchant_id, endpoint_id, held, identity, body)
    client = GuardedClient(loopback=context.settings.loopback_webhooks, connections=1)
    try:
        return await client.post(found.url, headers, body)
    finally:
        await client.close()
