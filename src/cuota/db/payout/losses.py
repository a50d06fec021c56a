"""The operator's losses in the ledger, by month and cause, over all merchants."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from cuota.core.payout.arrival import BANK_ZONE
from cuota.db.pool import Pool

# A month begins and ends at midnight in New York, as the days of payouts do.
_BY_MONTH = """SELECT date_trunc('month', created_at AT TIME ZONE $2)::date AS month, posting, currency,
        sum(CASE WHEN debit = 'losses' THEN amount ELSE -amount END) AS lost, count(*) AS count
    FROM {table} WHERE (debit = 'losses' OR credit = 'losses') AND created_at < $1 GROUP BY 1, 2, 3"""
_LOSSES = _BY_MONTH.format(table="transfers")
_MERCHANT_LOSSES = _BY_MONTH.format(table="merchant_transfers")


@dataclass(frozen=True, slots=True)
class MonthlyLoss:
    """The losses in one month by one posting, in cents; negative if the posting reduced the losses.

    `count` is the number of rows.
    """

    month: date
    posting: str
    currency: str
    lost: int
    count: int


async def losses(pool: Pool, before: datetime) -> list[MonthlyLoss]:
    """Return the losses of every month until a time: the newest month first, and within a month the largest loss first."""
    async with pool.session() as session:
        # This statement needs no timeout: it reads the whole ledger, and nothing waits for it.
        await session.execute("SET statement_timeout = 0")
        try:
            rows = [
                *await session.fetch(_LOSSES, before, BANK_ZONE.key),
                *await session.fetch(_MERCHANT_LOSSES, before, BANK_ZONE.key),
            ]
        finally:
            await session.execute("RESET statement_timeout")
    found = [
        MonthlyLoss(row["month"], row["posting"], row["currency"], int(row["lost"]), row["count"])
        for row in rows
    ]
    return sorted(found, key=lambda each: (-each.month.toordinal(), each.currency, -each.lost, each.posting))
