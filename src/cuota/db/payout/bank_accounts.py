"""Stores the bank accounts of merchants. The numbers are encrypted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from cuota.core.payout.bank_account import BankAccount
from cuota.db.cluster.across import fetch_across
from cuota.db.session import Session

# An account with this time was canceled or replaced before it took effect. The driver reads `infinity` as the last datetime.
_NEVER = datetime.max.replace(tzinfo=UTC)

_ADD = "SELECT add_bank_account($1, $2, $3, $4, $5, $6, $7, $8) AS effective_at"
_CHANGE = "SELECT change_bank_account($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS effective_at"
_WITHDRAW = "SELECT withdraw_bank_change($1, $2, $3, $4, $5) AS last4"
_OF = """SELECT account_id, last4, effective_at, created_at FROM bank_accounts WHERE merchant_id = $1
    ORDER BY created_at, account_id"""
_SEALED = "SELECT account_id, routing, account, last4 FROM bank_accounts WHERE merchant_id = $1"
_MERCHANTS = "SELECT merchant_id FROM merchants"
_HAVING = "SELECT DISTINCT merchant_id FROM bank_accounts"
_PAUSED = "SELECT merchant_id FROM settlements WHERE resume_at <= $1"
_RESUME = "SELECT resume_payouts($1, $2) AS resumed"
_PAUSED_SINCE = "SELECT paused_since FROM settlements WHERE merchant_id = $1"


@dataclass(frozen=True, slots=True)
class SealedAccount:
    """A bank account to store: its encrypted numbers, and the last four digits."""

    account_id: UUID
    routing: bytes
    account: bytes
    last4: str


async def add(
    session: Session,
    merchant_id: UUID,
    sealed: SealedAccount,
    now: datetime,
    delay: timedelta,
    *,
    told: bool = True,
) -> datetime | None:
    """Add an account and return when it takes effect: the first one now, a change after `delay`.

    With `told`, the merchant gets the event bank_account.changed. Without `told`, only a first account is added, and
    the result is None if there is already one.
    """
    row = await session.fetchrow(
        _ADD, merchant_id, sealed.account_id, sealed.routing, sealed.account, sealed.last4, now, delay, told
    )
    return None if row is None else row["effective_at"]


@dataclass(frozen=True, slots=True)
class ToldBy:
    """Who made a change, as the mail to the owners says: `who` is the person, `place` the IP address. Both may be empty.

    `at` is when the mail is due, by the real clock.
    """

    who: str
    place: str
    at: datetime


async def change(
    session: Session, merchant_id: UUID, sealed: SealedAccount, now: datetime, delay: timedelta, told: ToldBy
) -> datetime:
    """Add an account as `add` does, and queue a mail to the owners. Return when it takes effect.

    Raises UniqueViolationError if the account was added before.
    """
    row = await session.fetchrow(
        _CHANGE, merchant_id, sealed.account_id, sealed.routing, sealed.account, sealed.last4, now, delay,
        told.who, told.place, told.at,
    )  # fmt: skip
    assert row is not None
    effective_at: datetime = row["effective_at"]
    return effective_at


async def withdraw_change(session: Session, merchant_id: UUID, now: datetime, told: ToldBy) -> str | None:
    """Withdraw the change that has not taken effect yet, and queue a mail to the owners.

    Return the last four digits of its account, or None if there is none.
    """
    row = await session.fetchrow(_WITHDRAW, merchant_id, now, told.who, told.place, told.at)
    return None if row is None else row["last4"]


async def read_all(session: Session, merchant_id: UUID) -> list[BankAccount]:
    """Return every account of a merchant, oldest first."""
    return [
        BankAccount(
            row["account_id"],
            row["last4"],
            None if row["effective_at"].replace(tzinfo=UTC) == _NEVER else row["effective_at"],
            row["created_at"],
        )
        for row in await session.fetch(_OF, merchant_id)
    ]


async def read_sealed(session: Session, merchant_id: UUID) -> dict[UUID, SealedAccount]:
    """Return the encrypted numbers of every account of a merchant, by its id."""
    return {row["account_id"]: SealedAccount(*row) for row in await session.fetch(_SEALED, merchant_id)}


async def merchants_without(session: Session) -> list[UUID]:
    """Return the merchants that have no account."""
    having = {row["merchant_id"] for row in await session.fetch(_HAVING)}
    merchants = [row["merchant_id"] for row in await session.fetch(_MERCHANTS)]
    return [merchant_id for merchant_id in merchants if merchant_id not in having]


async def paused_since(session: Session, merchant_id: UUID) -> datetime | None:
    """Return when a merchant's payouts were paused, or None if they are not paused."""
    row = await session.fetchrow(_PAUSED_SINCE, merchant_id)
    return None if row is None else row["paused_since"]


async def to_resume(session: Session, now: datetime) -> list[UUID]:
    """Return the merchants with paused payouts for which another account has taken effect by now."""
    return [row["merchant_id"] for row in await fetch_across(session, _PAUSED, now)]


async def resume(session: Session, merchant_id: UUID, now: datetime) -> bool:
    """Let a merchant's payouts continue if another account has taken effect since they were paused."""
    row = await session.fetchrow(_RESUME, merchant_id, now)
    return row is not None and bool(row["resumed"])
