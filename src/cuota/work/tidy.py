"""The job that deletes data that is no longer needed: stored responses, failed logins, abandoned sessions, old risk signals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

from cuota.core.plan.declines import ATTEMPTS_WITHIN, FINAL_KEPT
from cuota.core.risk.policy import MOST_HOURS
from cuota.db.apart import apart
from cuota.db.checkout import checkouts, codes, remembered
from cuota.db.desk import api_requests, notices, passkeys, sessions
from cuota.db.merchant import credentials
from cuota.db.old_rows import AT_ONCE
from cuota.db.operator import identities, minutes, operator_passkeys, operator_sessions
from cuota.db.order import idempotency
from cuota.db.plan import accounts, asks, declines
from cuota.db.risk import history
from cuota.flows.context import Context

# This is longer than the longest window that a policy may have.
SIGNALS_KEPT = timedelta(hours=2 * MOST_HOURS)
# This is longer than the hour in which a person's sign-in links are counted.
LINKS_KEPT = timedelta(days=1)
# What each process answered, for the operator's page of the system.
MINUTES_KEPT = timedelta(days=1)
# This is longer than a notice is retried.
NOTICES_KEPT = timedelta(days=30)
REQUESTS_KEPT = timedelta(days=30)


async def tidy(context: Context) -> int:
    """Delete old rows. Return 0, so that the job waits afterwards, unless a batch was full and more old rows may be left.

    Every call of a merchant may store a response, so deleting a fixed number every five minutes would never catch up.
    """
    deleted = [await _tidied(kind) for kind in _batches(context)]
    for kind in _rest(context):
        await _tidied(kind)
    return max(deleted) if max(deleted) >= AT_ONCE else 0


async def _tidied(kind: Callable[[], Awaitable[int | None]]) -> int:
    """Delete rows of one kind. Rows that cannot be deleted now, for example because a node of a cluster is down, wait for the next run."""
    with apart("deletion of old rows"):
        return await kind() or 0
    return 0


def _batches(context: Context) -> tuple[Callable[[], Awaitable[int]], ...]:
    """Return what deletes rows of merchants, in batches."""
    now, pool = context.real_now(), context.pool
    return (
        partial(idempotency.forget, pool, now),
        partial(checkouts.forget, pool, now),
        partial(sessions.forget, pool, now - LINKS_KEPT),
        partial(notices.forget, pool, now - NOTICES_KEPT),
        # Signals are written and deleted by the service's clock. This is longer than any policy's window.
        partial(history.forget, pool, context.now() - SIGNALS_KEPT),
    )


def _rest(context: Context) -> tuple[Callable[[], Awaitable[None]], ...]:
    """Return what deletes other rows."""
    now, clock, pool = context.real_now(), context.now(), context.pool
    return (
        partial(credentials.forget_failures, pool, now),
        partial(codes.forget, pool, now),
        partial(accounts.forget, pool, now),
        partial(remembered.forget, pool, now),
        partial(passkeys.forget, pool, now - LINKS_KEPT),
        partial(operator_sessions.forget, pool, now - LINKS_KEPT),
        partial(operator_passkeys.forget, pool, now - LINKS_KEPT),
        partial(identities.forget, pool, now - LINKS_KEPT),
        partial(minutes.forget, pool, now - MINUTES_KEPT),
        partial(asks.forget, pool, clock - SIGNALS_KEPT),
        partial(declines.forget, pool, clock - ATTEMPTS_WITHIN, clock - FINAL_KEPT),
    )


async def forget_requests(context: Context) -> int:
    """Delete calls of the request log that are too old, some of each merchant. Return how many."""
    return await _tidied(partial(api_requests.forget, context.pool, context.real_now() - REQUESTS_KEPT))
