"""A merchant's bank account: how it is checked, and when a change takes effect."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

CHANGE_DELAY = timedelta(days=3)
"""A change takes effect after this time: a thief changes the account right before a payout."""

_ROUTING = re.compile(r"[0-9]{9}", re.ASCII)
_ACCOUNT = re.compile(r"[0-9]{4,17}", re.ASCII)
_WEIGHTS = (3, 7, 1) * 3


class BadBankAccount(Exception):
    """The numbers cannot belong to a US bank account. The text says what to correct, and never contains the numbers."""


@dataclass(frozen=True, slots=True)
class BankDetails:
    """The numbers of a US bank account. Logs and tracebacks do not contain them; people see only the last four digits."""

    routing: str
    account: str

    def __repr__(self) -> str:
        return f"BankDetails(****{self.last4})"

    @property
    def last4(self) -> str:
        """The last four digits of the account number."""
        return self.account[-4:]


@dataclass(frozen=True, slots=True)
class BankAccount:
    """A stored bank account. `effective_at` is None if the change was canceled or replaced before it took effect."""

    account_id: UUID
    last4: str
    effective_at: datetime | None
    created_at: datetime


def read_bank_details(routing: str, account: str) -> BankDetails:
    """Check both numbers. Spaces and hyphens, as on a printed check, are ignored. Raises BadBankAccount."""
    routing, account = (re.sub(r"[ -]", "", text) for text in (routing, account))
    if not _ROUTING.fullmatch(routing):
        raise BadBankAccount("The routing number must have 9 digits.")
    if sum(int(digit) * weight for digit, weight in zip(routing, _WEIGHTS, strict=True)) % 10 or not int(
        routing
    ):
        raise BadBankAccount(
            "The routing number is not valid: its last digit does not match. Check each digit."
        )
    if not _ACCOUNT.fullmatch(account):
        raise BadBankAccount("The account number must have 4 to 17 digits.")
    return BankDetails(routing, account)
