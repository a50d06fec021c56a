"""A model of a plan's changes in hardship, computed differently than in core. This module imports nothing of the service."""

from __future__ import annotations

from datetime import date, timedelta

from support.properties.model import Model, Plan


class HardshipModel(Model):
    """A model of an order whose plan may get more installments, other days, a smaller fee, and write-offs."""

    def __init__(self, amount: int, fee: int, first_day: date, *, auto: bool) -> None:
        super().__init__(amount, fee, auto=auto)
        self.days = {number: first_day + timedelta(days=14 * (number - 1)) for number in (1, 2, 3, 4)}
        self.lost: frozenset[int] = frozenset()

    def plan(self) -> Plan:
        return {number: (self.cents.count(number), self.fees.count(number)) for number in self.days}

    def owed(self) -> list[int]:
        return [n for n, parts in self.plan().items() if n not in self.paid and sum(parts) > 0]

    def changeable(self) -> list[int]:
        """The installments that a change may touch."""
        return [n for n in self.owed() if n not in self.lost]

    def pay(self, number: int, charged: int) -> int:
        self.lost -= {number}
        return super().pay(number, charged)

    def write_off(self, number: int) -> None:
        """Write off an installment that the consumer has not paid for a long time."""
        self.lost |= {number}

    def postpone(self, days: int) -> None:
        """Move every remaining payment later by this many days."""
        for number in self.changeable():
            self.days[number] += timedelta(days=days)

    def divide(self, parts: int, every: int, first: date) -> None:
        """Divide the remaining cents again, one by one, among this many installments."""
        left = self.changeable()
        unpaid = [n for n in self.days if n not in self.paid and n not in self.lost]
        unpaid += range(len(self.days) + 1, len(self.days) + parts + 1)
        for index, number in enumerate(unpaid[:parts]):
            self.days[number] = first + timedelta(days=every * index)
        for pile in (self.cents, self.fees):
            loose = sum(number in left for number in pile)
            pile[:] = [number for number in pile if number not in left]
            pile += [unpaid[index % parts] for index in range(loose)]
            pile.sort(key=lambda n: (n not in self.paid, n))

    def waive(self, cents: int) -> None:
        """Take this much off the fee: cents of the last payment first."""
        left = self.changeable()
        for _ in range(cents):
            self.fees.reverse()
            self.fees.remove(max(number for number in self.fees if number in left))
            self.fees.reverse()

    def accounts(self) -> dict[str, int]:
        held = super().accounts()
        losses = sum(n in self.lost for n in (*self.cents, *self.fees))
        held["consumer_receivable"] = held.get("consumer_receivable", 0) - losses
        held["losses"] = losses
        return {account: cents for account, cents in held.items() if cents}
