"""Claims the payouts that must be sent to the bank or looked up there, and records the bank's answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from uuid import UUID

from cuota.core.payout.payout import PayoutStatus
from cuota.db.cluster.across import claim_across, fetch_across
from cuota.db.session import Session

# The lease of a claim. If the worker dies, another one continues after this time. It is longer than all calls of a batch.
LEASE = timedelta(minutes=2)

_MERCHANTS_DUE = "SELECT DISTINCT merchant_id FROM payouts WHERE try_at <= $1"
# Without a rail that sends, only the payouts that a rail was asked to send are claimed, to look them up.
_ASKED = "(p.bank_rail IS NOT NULL AND (p.status <> 'created' OR p.tries > 0))"
_MERCHANTS_ASKED = f"SELECT DISTINCT p.merchant_id FROM payouts p WHERE p.try_at <= $1 AND {_ASKED}"
# A claim sets try_at to the end of its lease. The UPDATE repeats the condition, because SKIP LOCKED alone claims some rows twice.
# The first claim also stores the bank rail, before the bank is called: from then on, only this rail knows whether the payout was sent.
_CLAIM = f"""
WITH due AS MATERIALIZED (
    SELECT p.payout_id FROM payouts p WHERE p.merchant_id = $1 AND p.try_at <= $2 AND ($5::text IS NOT NULL OR {_ASKED})
    ORDER BY p.try_at, p.number LIMIT $4 FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE payouts p SET try_at = $3, tries = least(p.tries + 1, 1000),
        bank_rail = CASE WHEN p.status = 'created' AND p.tries = 0 THEN coalesce(p.bank_rail, $5) ELSE p.bank_rail END FROM due
    WHERE p.merchant_id = $1 AND p.payout_id = due.payout_id AND p.try_at <= $2
    RETURNING p.merchant_id, p.payout_id, p.number, p.status, p.amount, p.currency,
        coalesce(p.released_arrival, p.arrival_date) AS arrival_date, p.paid_at, p.account_id, p.tries, p.bank_rail
)
SELECT c.*, b.routing, b.account, m.name FROM claimed c
    JOIN bank_accounts b ON b.merchant_id = $1 AND b.account_id = c.account_id JOIN merchants m ON m.merchant_id = $1
"""
_MOVE = "SELECT move_payout($1, $2, $3, $4, $5, $6, $7) AS steps"
_LATER = """UPDATE payouts SET try_at = $4, problem = $5 WHERE merchant_id = $1 AND payout_id = $2 AND status = $3
    AND tries = $6 RETURNING 1"""
# From the day on which the payout is sent, its day of arrival never changes, because its events name this day.
_ASSIGN = """UPDATE payouts SET bank_rail = $3,
        released_arrival = CASE WHEN coalesce(released_arrival, arrival_date) = $5 THEN released_arrival ELSE $5 END
    WHERE merchant_id = $1 AND payout_id = $2 AND status = 'created' AND tries = $4 RETURNING 1"""
_EXPECT = """UPDATE payouts SET confirm_by = $4, bank_rail = coalesce(bank_rail, $3),
        released_arrival = CASE WHEN status <> 'created' OR coalesce(released_arrival, arrival_date) = $5 THEN released_arrival ELSE $5 END
    WHERE merchant_id = $1 AND payout_id = $2 AND (bank_rail IS NULL OR confirm_by IS DISTINCT FROM $4
        OR (status = 'created' AND coalesce(released_arrival, arrival_date) <> $5))"""
_WAITING = (
    "SELECT merchant_id, count(*) AS waiting FROM payouts WHERE status = 'created' GROUP BY merchant_id"
)


@dataclass(frozen=True, slots=True)
class DuePayout:
    """A claimed payout, in cents, with its account's encrypted numbers. `tries` counts this claim too.

    `bank_rail` names the rail that may have sent the payout. It is None if an earlier release tried to send the payout.
    """

    merchant_id: UUID
    payout_id: UUID
    number: int
    status: PayoutStatus
    amount: int
    currency: str
    arrival_date: date
    paid_at: datetime | None
    account_id: UUID
    tries: int
    bank_rail: str | None
    routing: bytes = field(repr=False)
    account: bytes = field(repr=False)
    merchant_name: str


async def claim(session: Session, now: datetime, limit: int, bank_rail: str | None) -> list[DuePayout]:
    """Claim at most `limit` payouts that are due. The order of the merchants is random.

    A payout that no rail was asked to send becomes one of the rail with this name. Without a name, such payouts are not claimed.
    """
    merchants = _MERCHANTS_ASKED if bank_rail is None else _MERCHANTS_DUE
    rows = await claim_across(session, merchants, _CLAIM, now, LEASE, limit, bank_rail)
    return [
        DuePayout(
            row["merchant_id"], row["payout_id"], row["number"], PayoutStatus(row["status"]), row["amount"], row["currency"],
            row["arrival_date"], row["paid_at"], row["account_id"], row["tries"], row["bank_rail"], row["routing"], row["account"], row["name"],
        )
        for row in rows
    ]  # fmt: skip


async def assign(session: Session, due: DuePayout, bank_rail: str, arrival: date) -> bool:
    """Store the rail and the day of arrival of a payout that no bank knows, before a bank is asked to pay it.

    Return False if another worker has claimed or moved the payout.
    """
    row = await session.fetchrow(_ASSIGN, due.merchant_id, due.payout_id, bank_rail, due.tries, arrival)
    return row is not None


async def expect(session: Session, due: DuePayout, bank_rail: str, confirm_by: date, arrival: date) -> None:
    """Store the rail that sent this payout, and the days on which the payment arrives and is confirmed at the latest."""
    await session.fetchrow(_EXPECT, due.merchant_id, due.payout_id, bank_rail, confirm_by, arrival)


async def move(
    session: Session,
    due: DuePayout,
    target: str,
    now: datetime,
    look_at: datetime | None,
    *,
    reason: str | None = None,
    reference: str | None = None,
) -> list[PayoutStatus]:
    """Change a payout's status to the bank's answer: sent, paid, returned or rejected. Return all new statuses.

    An empty list means that the payout already has this status, or that the change is no longer possible.
    """
    row = await session.fetchrow(
        _MOVE, due.merchant_id, due.payout_id, target, now, reason, reference, look_at
    )
    return [] if row is None else [PayoutStatus(step) for step in row["steps"]]


async def later(session: Session, due: DuePayout, at: datetime | None, problem: str | None) -> None:
    """Schedule the next call to the bank for this time.

    `problem` says why the last call failed; it is None after an answer that changed nothing.

    Does nothing if another worker has claimed or moved the payout meanwhile.
    """
    await session.fetchrow(_LATER, due.merchant_id, due.payout_id, due.status, at, problem, due.tries)


async def count_created(session: Session) -> int:
    """Return how many payouts of all merchants have not been sent to the bank yet."""
    return sum(row["waiting"] for row in await fetch_across(session, _WAITING))
