"""The interface between the service and a bank that sends payouts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class BankOrder:
    """An order to pay a merchant, in cents.

    `payout_id` is our own reference: a repeated order with the same `payout_id` pays only once.

    `number` counts the merchant's payouts from 1. `arrival_date` is the business day on which the money is expected.
    """

    payout_id: UUID
    merchant_id: UUID
    merchant_name: str
    number: int
    amount: int
    currency: str
    routing: str = field(repr=False)
    account: str = field(repr=False)
    arrival_date: date


class BankState(StrEnum):
    """The state of an order, as the bank reports it."""

    ACCEPTED = "accepted"  # the bank will pay, or has not reported the payment yet
    PAID = "paid"  # the money has arrived
    REJECTED = "rejected"  # the bank refused the order; no money moved
    RETURNED = "returned"  # the merchant's bank sent the money back


FINAL = frozenset({BankState.REJECTED, BankState.RETURNED})
"""After one of these states, the bank reports no other state of the same order."""


@dataclass(frozen=True, slots=True)
class BankAnswer:
    """The bank's answer. `amount` is the order's amount in the bank's own records, in cents.

    `reason` says why an order was rejected or returned, such as the ACH code `R03`. `reference` is the bank's own reference.
    `confirm_by` is the last day on which the bank confirms this payment, if the rail's `patience` does not say it.
    `arrival_date` is the day of payment, if the bank was asked for another one than the order's.
    """

    state: BankState
    amount: int
    reason: str | None = None
    reference: str | None = None
    confirm_by: date | None = None
    arrival_date: date | None = None


class BankRail(Protocol):
    """The interface of the class in CUOTA_BANK_RAIL. Each call may raise RailUnavailable.

    The `name` is stored with each payout that the rail sends.

    The constructor takes what `rails/load.py` gives to every rail: `(settings, books, vault, now)`. `name` has 2 to 32
    characters from a-z, 0-9 and _. A rail may also have `async def close(self)`, which is called when the process ends, and
    `patience`: the business days after the day of payment in which the bank confirms it (0 without this attribute).
    """

    name: str

    async def send(self, order: BankOrder) -> BankAnswer:
        """Order the payment, once for each `payout_id`.

        A repeated call with the same `payout_id` returns the result of `find`.
        """
        ...

    async def find(self, payout_id: UUID) -> BankAnswer | None:
        """Look up an earlier order of any age in the bank's records. Return None if it never arrived there."""
        ...
