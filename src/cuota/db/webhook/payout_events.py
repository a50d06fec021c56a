"""Reads the data for the bodies of events about payouts and bank accounts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from cuota.db.nested import Nested
from cuota.db.session import Session
from cuota.db.webhook.happened import Happened

_COLUMNS = (
    "e.sequence",
    "e.type",
    "e.operation",
    "e.amount",
    "e.reference",
    "e.success",
    "e.message",
    "e.created_at",
)
_OF_PAYOUT = Nested(
    "happened",
    _COLUMNS,
    "FROM events e WHERE e.merchant_id = $1 AND e.order_id = p.payout_id ORDER BY e.sequence",
)
_OF_ACCOUNT = Nested(
    "happened",
    _COLUMNS,
    "FROM events e WHERE e.merchant_id = $1 AND e.order_id = b.account_id ORDER BY e.sequence",
)
_PAYOUTS = f"""SELECT p.payout_id, p.number, p.amount, p.currency, p.closed_at, p.arrival_date,
        CASE WHEN p.released_at IS NULL THEN p.released_arrival END AS sent_arrival, p.last_line - p.first_line + 1 AS line_count, b.last4, {_OF_PAYOUT.columns}
    FROM payouts p JOIN bank_accounts b ON b.merchant_id = $1 AND b.account_id = p.account_id {_OF_PAYOUT.join}
    WHERE p.merchant_id = $1 AND p.payout_id = ANY ($2::uuid[])"""
_ACCOUNTS = f"""SELECT b.account_id, b.last4, b.announced_at, {_OF_ACCOUNT.columns} FROM bank_accounts b {_OF_ACCOUNT.join}
    WHERE b.merchant_id = $1 AND b.account_id = ANY ($2::uuid[])"""


@dataclass(frozen=True, slots=True)
class PayoutFacts:
    """The data for the bodies of a payout's events. The amount is in cents.

    `arrival_date` is the day of arrival at the closing. `sent_arrival` is the day that was expected when the payout was sent, if that was
    another day; it does not change after that. Of a payout that was held and released, the events name the day at the closing.
    """

    merchant_id: UUID
    payout_id: UUID
    number: int
    amount: int
    currency: str
    closed_at: datetime
    arrival_date: date
    sent_arrival: date | None
    line_count: int
    last4: str
    events: tuple[Happened, ...]


@dataclass(frozen=True, slots=True)
class BankAccountFacts:
    """The data for the bodies of a bank account's events, which never changes."""

    merchant_id: UUID
    account_id: UUID
    last4: str
    effective_at: datetime
    events: tuple[Happened, ...]


async def facts(
    session: Session, merchant_id: UUID, ids: list[UUID]
) -> dict[UUID, PayoutFacts | BankAccountFacts]:
    """Return the data of the payouts and bank accounts among these ids."""
    payouts = await session.fetch(_PAYOUTS, merchant_id, ids)
    found: dict[UUID, PayoutFacts | BankAccountFacts] = {
        row["payout_id"]: _payout_of(merchant_id, row) for row in payouts
    }
    left = [each for each in ids if each not in found]
    for row in await session.fetch(_ACCOUNTS, merchant_id, left) if left else ():
        events = tuple(Happened(*event) for event in _OF_ACCOUNT.of(row))
        found[row["account_id"]] = BankAccountFacts(
            merchant_id, row["account_id"], row["last4"], row["announced_at"], events
        )
    return found


def _payout_of(merchant_id: UUID, row: Any) -> PayoutFacts:
    return PayoutFacts(
        merchant_id, row["payout_id"], row["number"], row["amount"], row["currency"], row["closed_at"], row["arrival_date"],
        row["sent_arrival"], row["line_count"], row["last4"], tuple(Happened(*event) for event in _OF_PAYOUT.of(row)),
    )  # fmt: skip
