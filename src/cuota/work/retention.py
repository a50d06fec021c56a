"""The retention job: delete data that has reached its age limit, in small batches.

Most limits are settings; docs/retention.md gives the reasons.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from cuota.core.order.order import Status
from cuota.db.apart import apart
from cuota.db.privacy import retention
from cuota.flows.context import Context

# A statement is saved within seconds after its files.
UNSAVED_FILES_DAYS = 1


async def keep_terms(context: Context) -> int:
    """Run one batch for every kind of data, by the service's clock. Return how many rows were checked."""
    settings, pool, now = context.settings, context.pool, context.now()

    def before(days: int) -> datetime:
        return now - timedelta(days=days)

    abandoned, declined = before(settings.keep_abandoned_days), before(settings.keep_declined_days)
    attempts = before(settings.keep_attempts_days)
    batches = (
        partial(retention.blank_ended_orders, pool, Status.ABANDONED, abandoned, now),
        partial(retention.blank_ended_orders, pool, Status.DECLINED, declined, now),
        # The letter about a declined order needs the name and address that the consumer entered.
        partial(retention.forget_consumers, pool, declined),
        partial(retention.forget_messages, pool, before(settings.keep_messages_days)),
        partial(retention.forget_unsaved_files, pool, before(UNSAVED_FILES_DAYS)),
        partial(retention.forget_attempts, pool, attempts),
        partial(retention.forget_left_deliveries, pool, attempts),
    )
    done = 0
    for batch in batches:
        # One kind of data that cannot be deleted now does not keep the others.
        with apart("retention"):
            done += await batch()
    return done
