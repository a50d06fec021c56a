"""Reads payouts for the operator: a list over all merchants, and the merchants whose payouts are paused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from cuota.core.payout.late import WAITS_FOR_FILE, PaymentDays
from cuota.core.payout.payout import PayoutStatus
from cuota.db.pool import Row
from cuota.db.position import BEHIND_ALL, Position
from cuota.db.session import Session

_SHOWN = """p.merchant_id, m.name, p.payout_id, p.number, p.status, p.amount, p.currency, p.closed_at,
        coalesce(p.released_arrival, p.arrival_date) AS arrival_date, b.last4, p.tries, p.problem, p.return_reason, p.try_at, p.confirm_by,
        CASE WHEN p.released_at IS NULL THEN p.held_at END AS held_at"""
_JOINED = """FROM payouts p JOIN bank_accounts b ON b.merchant_id = p.merchant_id AND b.account_id = p.account_id
        JOIN merchants m ON m.merchant_id = p.merchant_id"""
# The newest payouts come first. A status that is null matches all. $3 and $4 are the last payout of the previous page. Each list has its
# own statement: a plan for all of them would read the payouts of all merchants to find those of one.
_AFTER = """p.closed_at <= $3 AND (p.closed_at < $3 OR p.payout_id > $4)
    ORDER BY p.closed_at DESC, p.payout_id LIMIT $2"""
_PAYOUTS = f"SELECT {_SHOWN} {_JOINED} WHERE ($1::text IS NULL OR p.status = $1) AND {_AFTER}"
# The index payouts_unpaid holds only these.
_UNPAID = f"SELECT {_SHOWN} {_JOINED} WHERE p.status = $1 AND p.status <> 'paid' AND {_AFTER}"
_OF_MERCHANT = f"""SELECT {_SHOWN} {_JOINED}
    WHERE p.merchant_id = $1 AND b.merchant_id = $1 AND ($2::text IS NULL OR p.status = $2) ORDER BY p.number DESC LIMIT $3"""
# The rules of core/payout/late.py: the bank's last answer was a problem ($1 is today), or the bank has not confirmed the payment in
# time ($2 if the rail that sent it is not known). The oldest first. The index payouts_due holds only payouts that the bank is still asked about.
_ARRIVES = "coalesce(p.released_arrival, p.arrival_date)"
_TROUBLE = f"""p.try_at IS NOT NULL AND ((p.problem IS NOT NULL AND (p.problem <> '{WAITS_FOR_FILE}' OR {_ARRIVES} < $1::date))
    OR (p.status = 'sent' AND CASE WHEN p.confirm_by IS NULL THEN {_ARRIVES} < $2::date ELSE p.confirm_by < $1::date END))"""
_TROUBLED = f"""SELECT {_SHOWN} {_JOINED} WHERE {_TROUBLE}
        AND ($4::timestamptz IS NULL OR (p.closed_at, p.payout_id) > ($4, $5::uuid)) ORDER BY p.closed_at, p.payout_id LIMIT $3"""
_TROUBLES = f"SELECT count(*) AS payouts FROM payouts p WHERE {_TROUBLE}"
# The index payouts_held holds only these. The oldest first.
_HELD_NOW = "p.held_at IS NOT NULL AND p.released_at IS NULL"
_HELD = f"""SELECT {_SHOWN} {_JOINED} WHERE {_HELD_NOW} AND ($2::timestamptz IS NULL OR (p.held_at, p.payout_id) > ($2, $3::uuid))
    ORDER BY p.held_at, p.payout_id LIMIT $1"""
_ONE = f"SELECT {_SHOWN} {_JOINED} WHERE p.merchant_id = $1 AND b.merchant_id = $1 AND p.payout_id = $2"
_COUNT_HELD = f"SELECT count(*) AS payouts, coalesce(sum(p.amount), 0)::bigint AS amount FROM payouts p WHERE {_HELD_NOW}"
_PAUSED = """SELECT s.merchant_id, m.name, s.paused_since FROM settlements s JOIN merchants m ON m.merchant_id = s.merchant_id
    WHERE s.paused_since IS NOT NULL AND ($1::uuid IS NULL OR s.merchant_id = $1) ORDER BY s.paused_since, m.name"""


@dataclass(frozen=True, slots=True)
class ListedPayout:
    """A payout in the operator's list, in cents. `tries` counts the calls to the bank since the last change of the status.

    `held_at` is set while the payout is held: it waits for a person to release it. `confirm_by` is the last day on which the bank
    confirms the payment, by the rules of the rail that sent it.
    """

    merchant_id: UUID
    merchant: str
    payout_id: UUID
    number: int
    status: PayoutStatus
    amount: int
    currency: str
    closed_at: datetime
    arrival_date: date
    last4: str
    tries: int
    problem: str | None
    return_reason: str | None
    try_at: datetime | None
    held_at: datetime | None
    confirm_by: date | None


@dataclass(frozen=True, slots=True)
class PausedMerchant:
    """A merchant whose payouts are paused, because the bank returned one."""

    merchant_id: UUID
    name: str
    since: datetime


async def payouts(
    session: Session,
    status: PayoutStatus | None,
    limit: int,
    after: Position | None = None,
) -> list[ListedPayout]:
    """Return the newest payouts of all merchants after the position `after`, with one status or any."""
    sql = _PAYOUTS if status in {None, PayoutStatus.PAID} else _UNPAID
    return _listed(await session.fetch(sql, status, limit, *(after or BEHIND_ALL)))


async def payouts_of(
    session: Session, merchant_id: UUID, status: PayoutStatus | None, limit: int
) -> list[ListedPayout]:
    """Return the newest payouts of a merchant, with one status or any."""
    return _listed(await session.fetch(_OF_MERCHANT, merchant_id, status, limit))


async def troubled(
    session: Session, days: PaymentDays, limit: int, after: Position | None = None
) -> list[ListedPayout]:
    """Return the payouts that a person must check, the oldest first."""
    return _listed(
        await session.fetch(_TROUBLED, days.today, days.confirmed, limit, *(after or (None, None)))
    )


async def count_troubled(session: Session, days: PaymentDays) -> int:
    """Return how many payouts a person must check."""
    row = await session.fetchrow(_TROUBLES, days.today, days.confirmed)
    return row["payouts"] if row else 0


async def held(session: Session, limit: int, after: Position | None = None) -> list[ListedPayout]:
    """Return the payouts that wait for a release, the oldest first."""
    return _listed(await session.fetch(_HELD, limit, *(after or (None, None))))


async def count_held(session: Session) -> tuple[int, int]:
    """Return how many payouts wait for a release, and their sum in cents."""
    row = await session.fetchrow(_COUNT_HELD)
    return (row["payouts"], row["amount"]) if row else (0, 0)


async def read_one(session: Session, merchant_id: UUID, payout_id: UUID) -> ListedPayout | None:
    """Return one payout, or None."""
    found = _listed(await session.fetch(_ONE, merchant_id, payout_id))
    return found[0] if found else None


def _listed(rows: list[Row]) -> list[ListedPayout]:
    return [
        ListedPayout(
            row["merchant_id"], row["name"], row["payout_id"], row["number"], PayoutStatus(row["status"]), row["amount"],
            row["currency"], row["closed_at"], row["arrival_date"], row["last4"], row["tries"], row["problem"],
            row["return_reason"], row["try_at"], row["held_at"], row["confirm_by"],
        )
        for row in rows
    ]  # fmt: skip


async def paused(session: Session, merchant_id: UUID | None) -> list[PausedMerchant]:
    """Return the merchants whose payouts are paused, beginning with the longest pause."""
    return [PausedMerchant(*row) for row in await session.fetch(_PAUSED, merchant_id)]
