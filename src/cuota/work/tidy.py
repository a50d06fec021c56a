"""Dropping what is too old to matter: kept answers, failed logins, abandoned browsers."""

from __future__ import annotations

from cuota.db import accounts, checkouts, credentials, idempotency
from cuota.flows.context import Context, utc_now


async def tidy(context: Context) -> int:
    """Tidy up; always answers 0, so that it rests afterwards."""
    now = utc_now()
    await idempotency.forget(context.pool, now)
    await credentials.forget_failures(context.pool, now)
    await checkouts.forget(context.pool, now)
    await accounts.forget(context.pool, now)
    return 0
