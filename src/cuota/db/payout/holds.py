"""Holds of payouts: for a merchant that is not approved, or by the operator.

Each held payout is released by hand (migrations 0038, 0044, 0054).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from cuota.db.session import Session

_HOLD = "SELECT hold_payouts($1, $2, $3, $4) AS stopped"
_RELEASE = "SELECT release_payout($1, $2, $3, $4) AS result"
_ACCOUNT = "SELECT account_id FROM payouts WHERE merchant_id = $1 AND payout_id = $2"
_WOULD = "SELECT release_would($1, $2, $3) AS result"
_COULD_STOP = """SELECT count(*) AS payouts, coalesce(sum(amount), 0)::bigint AS amount FROM payouts
    WHERE merchant_id = $1 AND status = 'created' AND tries = 0 AND (held_at IS NULL OR released_at IS NOT NULL)"""
_READ = "SELECT unapproved_since, held_since FROM settlements WHERE merchant_id = $1"


class HoldReason(StrEnum):
    """Why a merchant's payouts are held."""

    UNAPPROVED = "unapproved"
    OPERATOR = "operator"


class Release(StrEnum):
    """What a release did: the results of the function release_payout."""

    RELEASED = "released"
    GIVEN_BACK = "given_back"  # another account is in force by now: the next payout pays the amount
    REFUSED = "refused"  # the operator did not accept the account, and no other one is in force
    UNAPPROVED = "unapproved"
    NOT_HELD = "not_held"


@dataclass(frozen=True, slots=True)
class Holds:
    """When a merchant's payouts were held, by reason. Both are None if payouts are not held."""

    unapproved_since: datetime | None = None
    held_since: datetime | None = None


async def hold(session: Session, merchant_id: UUID, why: HoldReason, now: datetime, *, on: bool) -> int:
    """Begin or end a hold. Return how many payouts the hold stopped before they were sent to the bank."""
    row = await session.fetchrow(_HOLD, merchant_id, why, on, now)
    return row["stopped"] if row else 0


async def read(session: Session, merchant_id: UUID) -> Holds:
    """Return the holds of a merchant."""
    row = await session.fetchrow(_READ, merchant_id)
    return Holds() if row is None else Holds(*row)


async def could_stop(session: Session, merchant_id: UUID) -> tuple[int, int]:
    """Return how many payouts a hold would stop now, and their sum in cents."""
    row = await session.fetchrow(_COULD_STOP, merchant_id)
    return (row["payouts"], row["amount"]) if row else (0, 0)


async def release(
    session: Session, merchant_id: UUID, payout_id: UUID, now: datetime, arrival: date
) -> Release:
    """Release a payout that is held: it is sent to the bank at once, or its amount goes back to the merchant's balance."""
    row = await session.fetchrow(_RELEASE, merchant_id, payout_id, now, arrival)
    assert row is not None
    return Release(row["result"])


async def would(session: Session, merchant_id: UUID, payout_id: UUID, now: datetime) -> Release:
    """Return what a release of this payout, which exists, would do now: RELEASED, GIVEN_BACK or REFUSED."""
    # Two statements: on a Citus cluster, a function in a query of a shard must not read tables itself.
    paid = await session.fetchrow(_ACCOUNT, merchant_id, payout_id)
    assert paid is not None
    row = await session.fetchrow(_WOULD, merchant_id, paid["account_id"], now)
    assert row is not None
    return Release(row["result"])


async def gives_back(session: Session, merchant_id: UUID, payout_id: UUID, at: datetime) -> bool:
    """Return whether another account is in force at that time, so that the next payout pays the amount of this one."""
    return await would(session, merchant_id, payout_id, at) is Release.GIVEN_BACK
