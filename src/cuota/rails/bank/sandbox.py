"""The sandbox's bank: real code with its own tables and transactions, like an external company."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from cuota.core.payout.arrival import at_opening, business_days_after, day_at_bank
from cuota.core.sandbox import TEST_ACCOUNTS
from cuota.rails.bank.protocol import BankAnswer, BankOrder, BankState
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailDatabase, RailVault

RETURN_DAYS = 2
NO_ACCOUNT = "R03 No Account/Unable to Locate Account"
INVALID_ROUTING = "R13 Invalid ACH Routing Number"
_BEHAVIOURS = {account.number: account.behaviour for account in TEST_ACCOUNTS}
_REASONS = {"returned": NO_ACCOUNT, "rejected": INVALID_ROUTING}

_SEND = """INSERT INTO bank_simulator.orders (payout_id, merchant_id, reference, last4, behaviour, amount, currency, reason, created_at,
        pays_at, returns_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (payout_id) DO NOTHING"""
_FIND = """SELECT behaviour, amount, reason, reference, pays_at, returns_at FROM bank_simulator.orders
    WHERE payout_id = $1"""


class SandboxBankRail:
    """A simulated bank. It pays at 09:00 in New York on the next business day. The table of test accounts says how each account behaves."""

    name = "sandbox"

    def __init__(self, settings: RailSettings, books: RailDatabase, vault: RailVault, now: Clock) -> None:
        del settings, vault
        self._books = books
        self._now = now

    async def send(self, order: BankOrder) -> BankAnswer:
        """Accept the order, once for each payout id."""
        now, behaviour = self._now(), _BEHAVIOURS.get(order.account, "pays")
        day = business_days_after(day_at_bank(now), 1)
        pays_at = at_opening(day) if behaviour in {"pays", "returned"} else None
        returns_at = at_opening(business_days_after(day, RETURN_DAYS)) if behaviour == "returned" else None
        await self._books.execute(
            _SEND, order.payout_id, order.merchant_id, f"bank_{order.payout_id.hex[-12:]}", order.account[-4:], behaviour,
            order.amount, order.currency, _REASONS.get(behaviour), now, pays_at, returns_at,
        )  # fmt: skip
        found = await self.find(order.payout_id)
        assert found is not None
        return found

    async def find(self, payout_id: UUID) -> BankAnswer | None:
        """Look up the order. Its state depends on the time."""
        row = await self._books.fetchrow(_FIND, payout_id)
        if row is None:
            return None
        state = _state(row, self._now())
        reason = row["reason"] if state in {BankState.REJECTED, BankState.RETURNED} else None
        return BankAnswer(state, row["amount"], reason, row["reference"])


def _state(row: Mapping[str, Any], now: datetime) -> BankState:
    if row["behaviour"] == "rejected":
        return BankState.REJECTED
    if row["returns_at"] is not None and row["returns_at"] <= now:
        return BankState.RETURNED
    if row["pays_at"] is not None and row["pays_at"] <= now:
        return BankState.PAID
    return BankState.ACCEPTED
