"""Bank rails that lose answers, or give the answers that a test prescribes."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from cuota.flows.context import Context
from cuota.rails.bank.protocol import BankAnswer, BankOrder, BankRail, BankState
from cuota.rails.bank.rails import BoundedBankRail
from cuota.rails.unavailable import RailUnavailable


class FlakyBank:
    """Passes calls to a rail, and loses the answers to the first `lost` orders. If `arrives` is False, these orders
    never reach the bank. It has the name of that rail."""

    def __init__(self, rail: BankRail, lost: int = 0, *, arrives: bool = True) -> None:
        self.name = rail.name
        self._rail, self._lost, self._arrives = rail, lost, arrives
        self.calls: list[str] = []

    async def send(self, order: BankOrder) -> BankAnswer:
        self.calls.append("send")
        self._lost -= 1
        if self._lost < 0:
            return await self._rail.send(order)
        if self._arrives:
            await self._rail.send(order)
        raise RailUnavailable("the answer was lost")

    async def find(self, payout_id: UUID) -> BankAnswer | None:
        self.calls.append("find")
        return await self._rail.find(payout_id)


class SayingBank:
    """A bank that answers every question about a payout with the current value of `says`, in the amount of the
    order."""

    name = "saying"

    def __init__(self, says: BankState = BankState.ACCEPTED, reason: str | None = None) -> None:
        self.says, self.reason = says, reason
        self.amounts: dict[UUID, int] = {}

    async def send(self, order: BankOrder) -> BankAnswer:
        self.amounts[order.payout_id] = order.amount
        found = await self.find(order.payout_id)
        assert found is not None
        return found

    async def find(self, payout_id: UUID) -> BankAnswer | None:
        amount = self.amounts.get(payout_id)
        return None if amount is None else BankAnswer(self.says, amount, self.reason, "ref")


def with_bank(context: Context, rail: BankRail | None, *kept: BankRail) -> Context:
    """Return the context with another bank rail, or without one. `kept` are the rails that sent earlier payouts."""
    bank = None if rail is None else BoundedBankRail(rail)
    banks_kept = tuple(BoundedBankRail(each) for each in kept)
    return replace(context, rails=replace(context.rails, bank=bank, banks_kept=banks_kept))


def bank_of(context: Context) -> BankRail:
    """Return the rail that the context calls, without its timeout."""
    assert context.rails.bank is not None
    return context.rails.bank.rail


class RealMessages:
    """Stands for a real message rail: it is created, but never called."""

    shown_code = None

    def __init__(self, *given: object) -> None:
        pass

    async def _never(self, *_: object) -> None:
        raise AssertionError

    new_code = send_code = send = _never
