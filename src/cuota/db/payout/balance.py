"""What a merchant is owed now, and what the next payout will be."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.payout.terms import PayoutSchedule, SettlementTerms, in_force
from cuota.db.payout import listing
from cuota.db.session import Session

_NO_TERMS = SettlementTerms(version=0, valid_from=datetime.min.replace(tzinfo=UTC))
# The money of movements whose event has no settlement line yet. Each table is read for this merchant only.
_FIGURES = """
WITH held AS (
    SELECT position, closed, reserved, paused_since FROM settlements WHERE merchant_id = $1
), unsettled AS (
    SELECT f.order_id, f.sequence FROM feed f
        WHERE f.merchant_id = $1 AND f.position > coalesce((SELECT position FROM held), 0)
    UNION ALL SELECT b.order_id, b.sequence FROM outbox b WHERE b.merchant_id = $1
)
SELECT coalesce((SELECT reserved FROM held), 0)::bigint AS reserved,
    (SELECT paused_since FROM held) IS NOT NULL AS paused,
    EXISTS (SELECT FROM bank_accounts a WHERE a.merchant_id = $1 AND a.effective_at <= $3) AS payable,
    (SELECT coalesce(sum(l.net) FILTER (WHERE l.at < $2), 0)::bigint FROM settlement_lines l
        WHERE l.merchant_id = $1 AND l.number > coalesce((SELECT closed FROM held), 0)) AS available,
    (SELECT coalesce(sum(l.net) FILTER (WHERE l.at >= $2), 0)::bigint FROM settlement_lines l
        WHERE l.merchant_id = $1 AND l.number > coalesce((SELECT closed FROM held), 0)) AS open_since,
    (SELECT coalesce(sum(CASE WHEN t.credit = 'merchant_payable' THEN t.amount ELSE -t.amount END), 0)::bigint
        FROM unsettled u
            JOIN events e ON e.merchant_id = $1 AND e.order_id = u.order_id AND e.sequence = u.sequence
                AND e.type IN ('capture.completed', 'refund.completed')
            JOIN movements m ON m.merchant_id = $1 AND m.order_id = u.order_id
                AND m.kind = split_part(e.type, '.', 1) AND m.reference = e.reference
            JOIN transfers t ON t.merchant_id = $1 AND t.order_id = u.order_id AND t.cause = m.movement_id
                AND (t.debit = 'merchant_payable' OR t.credit = 'merchant_payable')) AS unsettled
"""


@dataclass(frozen=True, slots=True)
class Balance:
    """A merchant's balance, in cents. The last three say what the next payout will be; they are None if there is none."""

    available: int
    pending: int
    reserved: int
    debt: int
    closes_at: datetime | None
    arrival_date: date | None
    amount: int | None


async def read_balance(session: Session, merchant_id: UUID, now: datetime) -> Balance:
    """Return the balance at the time `now`."""
    terms = in_force(await listing.terms(session, merchant_id), now) or _NO_TERMS
    last, closes_at = _cutoffs(terms, now)
    row = await session.fetchrow(_FIGURES, merchant_id, last, now)
    assert row is not None
    available, pending = row["available"], row["open_since"] + row["unsettled"]
    owed = available + pending
    paid = row["payable"] and not row["paused"] and owed > 0 and owed >= terms.minimum
    return Balance(
        available,
        pending,
        row["reserved"],
        max(0, -owed),
        closes_at if paid else None,
        _next_weekday(closes_at, terms) if paid else None,
        owed if paid else None,
    )


def _cutoffs(terms: SettlementTerms, now: datetime) -> tuple[datetime, datetime]:
    """Return the last cutoff at or before `now`, and the first one after it, in UTC."""
    zone = ZoneInfo(terms.time_zone)
    today = now.astimezone(zone).date()
    days = (today + timedelta(days=offset) for offset in range(-32, 34))
    all_ = [datetime.combine(day, terms.cutoff, zone).astimezone(UTC) for day in days if _closes(terms, day)]
    return max(at for at in all_ if at <= now), min(at for at in all_ if at > now)


def _closes(terms: SettlementTerms, day: date) -> bool:
    if terms.payout is PayoutSchedule.WEEKLY:
        return day.weekday() == 0
    return terms.payout is PayoutSchedule.DAILY or day.day == 1


def _next_weekday(closes_at: datetime, terms: SettlementTerms) -> date:
    day = closes_at.astimezone(ZoneInfo(terms.time_zone)).date() + timedelta(days=1)
    while day.weekday() > 4:
        day += timedelta(days=1)
    return day
