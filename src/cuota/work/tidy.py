"""The job that deletes data that is no longer needed: stored responses, failed logins, abandoned sessions, old risk signals."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from datetime import timedelta

from cuota.core.plan.declines import ATTEMPTS_WITHIN, FINAL_KEPT
from cuota.core.risk.policy import MOST_HOURS
from cuota.db.checkout import checkouts, codes, remembered
from cuota.db.desk import api_requests, notices, passkeys, sessions
from cuota.db.hosts import NodeLost
from cuota.db.merchant import credentials
from cuota.db.operator import identities, minutes, operator_passkeys, operator_sessions
from cuota.db.order import idempotency
from cuota.db.plan import accounts, asks, declines
from cuota.db.risk import history
from cuota.flows.context import Context, utc_now

# This is longer than the longest window that a policy may have.
SIGNALS_KEPT = timedelta(hours=2 * MOST_HOURS)
# This is longer than the hour in which a person's sign-in links are counted.
LINKS_KEPT = timedelta(days=1)
# What each process answered, for the operator's page of the system.
MINUTES_KEPT = timedelta(days=1)
# This is longer than a notice is retried.
NOTICES_KEPT = timedelta(days=30)
REQUESTS_KEPT = timedelta(days=30)
log = logging.getLogger("cuota.work")


async def tidy(context: Context) -> int:
    """Delete old rows. Return 0, so that the job waits afterwards, unless more expired responses are left to delete.

    Every call of a merchant may store a response, so deleting a fixed number every five minutes would never catch up.
    """
    now, pool = utc_now(), context.pool
    forgotten = 0
    with _while_a_node_is_down():
        forgotten = await idempotency.forget(pool, now)
    await credentials.forget_failures(pool, now)
    with _while_a_node_is_down():
        await checkouts.forget(pool, now)
    await codes.forget(pool, now)
    await accounts.forget(pool, now)
    await remembered.forget(pool, now)
    await sessions.forget(pool, now - LINKS_KEPT)
    await notices.forget(pool, now - NOTICES_KEPT)
    await operator_sessions.forget(pool, now - LINKS_KEPT)
    await passkeys.forget(pool, now - LINKS_KEPT)
    await operator_passkeys.forget(pool, now - LINKS_KEPT)
    await identities.forget(pool, now - LINKS_KEPT)
    await minutes.forget(pool, now - MINUTES_KEPT)
    with _while_a_node_is_down():
        # Signals are written and deleted by the service's clock. This is longer than any policy's window.
        await history.forget(pool, context.now() - SIGNALS_KEPT)
    await asks.forget(pool, context.now() - SIGNALS_KEPT)
    await declines.forget(pool, context.now() - ATTEMPTS_WITHIN, context.now() - FINAL_KEPT)
    return forgotten if forgotten == idempotency.FORGOTTEN_AT_ONCE else 0


async def forget_requests(context: Context) -> int:
    """Delete calls of the request log that are too old, some of each merchant. Return how many."""
    with _while_a_node_is_down():
        return await api_requests.forget(context.pool, utc_now() - REQUESTS_KEPT)
    return 0


@contextlib.contextmanager
def _while_a_node_is_down() -> Iterator[None]:
    """Inside the block, ignore unreachable nodes of a cluster: this table's old rows are deleted when all nodes are back."""
    try:
        yield
    except NodeLost:
        log.warning("old rows stay for now", extra={"facts": {"problem": "NodeLost"}})
