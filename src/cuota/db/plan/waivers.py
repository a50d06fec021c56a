"""The plan fees that were waived for a consumer, at all merchants. A row is reserved before a plan is changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.session import Session

_RESERVE = "SELECT reserve_waiver($1, $2, $3, $4, $5, $6, $7, $8) AS used"
_SETTLE = "UPDATE consumer_waivers SET settled = true WHERE consumer_id = $1 AND change_id = $2"
_RELEASE = "DELETE FROM consumer_waivers WHERE consumer_id = $1 AND change_id = $2"
_UNSETTLED = """SELECT change_id, merchant_id FROM consumer_waivers
    WHERE consumer_id = $1 AND NOT settled AND at < $2"""
_USED = (
    "SELECT coalesce(sum(amount), 0)::bigint AS used FROM consumer_waivers WHERE consumer_id = $1 AND at > $2"
)


@dataclass(frozen=True, slots=True)
class Waiver:
    """A part of a plan's fee that is to be waived, in cents."""

    consumer_id: UUID
    change_id: UUID
    merchant_id: UUID
    order_id: UUID
    amount: int


async def reserve(session: Session, waiver: Waiver, now: datetime, since: datetime, most: int) -> int | None:
    """Reserve a waiver. Return None if it was reserved. If the sum since `since` would exceed `most`, return the sum so far."""
    row = await session.fetchrow(
        _RESERVE, waiver.consumer_id, waiver.change_id, waiver.merchant_id, waiver.order_id, waiver.amount, now, since, most
    )  # fmt: skip
    assert row is not None, "a SELECT of one function call returns one row"
    used = int(row["used"])
    return None if used + waiver.amount <= most else used


async def settle(session: Session, consumer_id: UUID, change_id: UUID) -> None:
    """Mark a waiver as final, because the plan was changed."""
    await session.fetchrow(_SETTLE, consumer_id, change_id)


async def release(session: Session, consumer_id: UUID, change_id: UUID) -> None:
    """Delete a waiver, because the plan was not changed."""
    await session.fetchrow(_RELEASE, consumer_id, change_id)


async def unsettled(session: Session, consumer_id: UUID, before: datetime) -> list[tuple[UUID, UUID]]:
    """Return the waivers that were reserved before this time and are not settled, as (change id, merchant id)."""
    return [
        (row["change_id"], row["merchant_id"]) for row in await session.fetch(_UNSETTLED, consumer_id, before)
    ]


async def used(session: Session, consumer_id: UUID, since: datetime) -> int:
    """Return how much was waived for a consumer since this time, in cents."""
    row = await session.fetchrow(_USED, consumer_id, since)
    return 0 if row is None else int(row["used"])
