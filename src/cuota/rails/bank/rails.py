"""Calls the bank rail with a timeout, and checks its answers."""

from __future__ import annotations

import re
from datetime import date
from uuid import UUID

from cuota.rails.bank.protocol import FINAL, BankAnswer, BankOrder, BankRail, BankState
from cuota.rails.bounded import SECONDS, within
from cuota.rails.unavailable import RailUnavailable

_REASON = re.compile(r"[ -~]{1,200}", re.ASCII)
UNKNOWN_REASON = "the bank gave no reason"


class BoundedBankRail:
    """Wraps a BankRail. Raises RailUnavailable after a timeout, an unexpected error, or an answer that is not clear."""

    def __init__(self, rail: BankRail, seconds: float = SECONDS) -> None:
        self.rail = rail
        self.name = rail.name
        self.patience: int = getattr(rail, "patience", 0)
        self._seconds = seconds

    async def close(self) -> None:
        """Close the connections of a rail that has a method `close`."""
        close = getattr(self.rail, "close", None)
        if close is not None:
            await close()

    async def send(self, order: BankOrder) -> BankAnswer:
        """Order the payment."""
        return _read(await within(self.rail.send(order), self._seconds), order.amount)

    async def find(self, payout_id: UUID, amount: int) -> BankAnswer | None:
        """Look up an earlier order.

        `amount` is the amount that it should pay, in cents. Return None if it never arrived.
        """
        found = await within(self.rail.find(payout_id), self._seconds)
        return None if found is None else _read(found, amount)


def _read(answer: object, amount: int) -> BankAnswer:
    if not isinstance(answer, BankAnswer) or not isinstance(answer.state, BankState):
        raise RailUnavailable("the bank rail's answer cannot be read")
    if answer.amount != amount:
        # Recording this as paid would hide the difference. So the payout is not changed, and the operator sees the
        # reason.
        raise RailUnavailable("the bank has another amount for this payout")
    reference = answer.reference if isinstance(answer.reference, str) else None
    reason = None
    if answer.state in FINAL:
        clear = isinstance(answer.reason, str) and _REASON.fullmatch(answer.reason)
        reason = answer.reason if clear else UNKNOWN_REASON
    confirm_by, arrival = (
        day if type(day) is date else None for day in (answer.confirm_by, answer.arrival_date)
    )
    return BankAnswer(answer.state, amount, reason, reference and reference[:200], confirm_by, arrival)
