"""The payouts that a hold still stops when their file is made or they are sent again, and those in a bank's report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.cluster.across import fetch_across
from cuota.db.payout import holds
from cuota.db.session import Session

_READ = """SELECT merchant_id, payout_id, account_id, status, held_at IS NOT NULL AND released_at IS NULL AS held, released_at,
        tries, try_at FROM payouts WHERE payout_id = ANY ($1::uuid[])"""
_REFUSED = "SELECT bank_account_is_refused($1, $2) AS refused"
# A claim since the payout was read has changed `try_at` and `tries`: then nothing is held, because the worker may be asking a bank.
# The payout keeps its rail, so that after the release this rail is looked up before another one is asked.
_HOLD = """UPDATE payouts SET held_at = greatest($3, released_at), released_at = NULL, released_arrival = NULL, try_at = NULL,
        tries = 0, bank_rail = $4
    WHERE merchant_id = $1 AND payout_id = $2 AND status = 'created' AND (held_at IS NULL OR released_at IS NOT NULL)
        AND coalesce(bank_rail, $4) = $4 AND tries = $5 AND try_at IS NOT DISTINCT FROM $6"""
# A payout of an earlier release has no rail yet.
_LOOK_UP = """UPDATE payouts SET try_at = least(coalesce(try_at, $3), $3), bank_rail = coalesce(bank_rail, $4)
    WHERE merchant_id = $1 AND payout_id = $2 AND (status IN ('sent', 'paid') OR (status = 'created' AND try_at IS NOT NULL))"""


@dataclass(frozen=True, slots=True)
class QueuedPayout:
    """A payout. `held`: it waits for its release. `released_at` is the time of its last release. A claim changes `tries` and `try_at`."""

    merchant_id: UUID
    payout_id: UUID
    account_id: UUID
    status: str
    held: bool
    released_at: datetime | None
    tries: int
    try_at: datetime | None


async def read(session: Session, payout_ids: Sequence[UUID]) -> list[QueuedPayout]:
    """Return these payouts, of all merchants."""
    return [QueuedPayout(*row) for row in await fetch_across(session, _READ, payout_ids)]


async def must_wait(session: Session, payout: QueuedPayout) -> bool:
    """Return whether this payout must not be paid now: it or its merchant is held, or its account was rejected."""
    if payout.held or payout.status != "created":
        return True
    of_merchant = await holds.read(session, payout.merchant_id)
    # A payout may be released while the hold of its merchant goes on. A hold that began after the release stops it again.
    for since in (of_merchant.unapproved_since, of_merchant.held_since):
        if since is not None and (payout.released_at is None or payout.released_at < since):
            return True
    row = await session.fetchrow(_REFUSED, payout.merchant_id, payout.account_id)
    return row is not None and bool(row["refused"])


async def hold(session: Session, payout: QueuedPayout, now: datetime, bank_rail: str) -> None:
    """Hold a payout that no bank has seen, and that belongs to the rail with this name.

    Does nothing if a worker has claimed the payout since it was read.
    """
    await session.fetchrow(
        _HOLD, payout.merchant_id, payout.payout_id, now, bank_rail, payout.tries, payout.try_at
    )


async def look_up(session: Session, payout_ids: Sequence[UUID], now: datetime, bank_rail: str) -> None:
    """Make these payouts of the rail with this name due, so that a worker asks the bank for them at once."""
    for each in await read(session, payout_ids) if payout_ids else []:
        await session.fetchrow(_LOOK_UP, each.merchant_id, each.payout_id, now, bank_rail)
