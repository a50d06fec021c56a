"""A browser in which an order was approved recognizes its consumer for 90 days, by the real clock."""

from __future__ import annotations

import secrets
from datetime import timedelta
from uuid import UUID

from cuota.db.checkout import remembered
from cuota.db.checkout.remembered import Remembered
from cuota.db.row_security import everyone
from cuota.db.session import Session
from cuota.flows.context import Context

REMEMBERED_FOR = timedelta(days=90)


def _hash(context: Context, token: str) -> bytes:
    return context.vault.hash("remembered-browser", token)


async def remember_browser(
    context: Context, consumer_id: UUID, merchant_id: UUID, order_id: UUID, earlier: str | None
) -> str:
    """Return the browser's new token. The `earlier` token is no longer valid."""
    token, now = secrets.token_urlsafe(32), context.real_now()
    browser = Remembered(consumer_id, merchant_id, order_id)
    await remembered.remember(context.pool, _hash(context, token), browser, now, now + REMEMBERED_FOR)
    if earlier is not None:
        await forget_browser(context, earlier)
    return token


async def who_is_remembered(
    context: Context, token: str | None, session: Session | None = None
) -> Remembered | None:
    """Return the consumer of the browser with this token, or None for a forged, revoked or expired token."""
    if token is None:
        return None
    # The browser is recognized at every merchant.
    with everyone():
        return await remembered.read(session or context.pool, _hash(context, token), context.real_now())


async def forget_all(context: Context, consumer_id: UUID) -> int:
    """Forget this consumer in all browsers. Return how many there were."""
    with everyone():
        return await remembered.revoke_all(context.pool, consumer_id)


async def forget_browser(context: Context, token: str) -> None:
    """Revoke this token."""
    with everyone():
        await remembered.revoke(context.pool, _hash(context, token))
