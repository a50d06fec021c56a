"""The retention job: delete data that has reached its age limit, in small batches.

Most limits are settings; docs/retention.md gives the reasons.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from cuota.core.order.order import Status
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
    done = await retention.blank_ended_orders(pool, Status.ABANDONED, abandoned, now)
    done += await retention.blank_ended_orders(pool, Status.DECLINED, declined, now)
    # The letter about a declined order needs the name and address that the consumer entered.
    done += await retention.forget_consumers(pool, declined)
    done += await retention.forget_messages(pool, before(settings.keep_messages_days))
    done += await retention.forget_unsaved_files(pool, before(UNSAVED_FILES_DAYS))
    attempts = before(settings.keep_attempts_days)
    done += await retention.forget_attempts(pool, attempts)
    return done + await retention.forget_left_deliveries(pool, attempts)
