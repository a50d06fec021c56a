"""The job that deletes what is no longer needed: stored responses, failed logins, abandoned sessions, old risk signals."""

from __future__ import annotations

from datetime import timedelta

from cuota.core.risk.policy import MOST_HOURS
from cuota.db.checkout import checkouts, codes, remembered
from cuota.db.merchant import credentials
from cuota.db.order import idempotency
from cuota.db.plan import accounts, asks
from cuota.db.risk import history
from cuota.flows.context import Context, utc_now

# Longer than the longest window that a policy may have.
SIGNALS_KEPT = timedelta(hours=2 * MOST_HOURS)


async def tidy(context: Context) -> int:
    """Delete old rows. Return 0, so that the job rests afterwards, unless more expired responses are left to delete.

    Stored responses are created as fast as merchants call. A fixed number every five minutes would never catch up.
    """
    now = utc_now()
    forgotten = await idempotency.forget(context.pool, now)
    await credentials.forget_failures(context.pool, now)
    await checkouts.forget(context.pool, now)
    await codes.forget(context.pool, now)
    await accounts.forget(context.pool, now)
    await remembered.forget(context.pool, now)
    # Signals are written and deleted by the service's clock. This is longer than any policy's window.
    await history.forget(context.pool, context.now() - SIGNALS_KEPT)
    await asks.forget(context.pool, context.now() - SIGNALS_KEPT)
    return forgotten if forgotten == idempotency.FORGOTTEN_AT_ONCE else 0
