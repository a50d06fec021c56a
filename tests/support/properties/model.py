"""A model of an order that computes everything cent by cent, unlike core.

All cents of the order form a stack, and each cent has the number of its installment. A void or refund takes cents off
the top. This module imports nothing of the service.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

Plan = dict[int, tuple[int, int]]


def _pile(cents: int, paid: frozenset[int]) -> list[int]:
    """Deal the cents one by one to installments 1 to 4, and stack them: paid installments at the bottom, later ones on
    top."""
    dealt = [index % 4 + 1 for index in range(cents)]
    return sorted(dealt, key=lambda number: (number not in paid, number))


class Model:
    """One order since its approval. If `completed` is False, the order was never approved."""

    def __init__(
        self, amount: int, fee: int, paid: Iterable[int] = (1,), *, auto: bool = False, completed: bool = True
    ) -> None:
        self.amount, self.fee, self.completed = amount, fee, completed
        self.paid = frozenset(paid)
        self.cents, self.fees = _pile(amount, self.paid), _pile(fee, self.paid)
        self.collected = sum(number in self.paid for number in (*self.cents, *self.fees))
        self.taken = Counter(capture=amount if auto and completed else 0)
        self.used: dict[tuple[str, str], int] = {}
        self.ended = self.lapsed = False
        self.due_to_cards = self.back_on_cards = 0

    @property
    def rest(self) -> int:
        """Return the amount that may still be captured or voided."""
        return self.amount - self.taken["capture"] - self.taken["void"] if self.completed else 0

    def limit(self, kind: str) -> int:
        """Return the largest amount that the next movement of this kind may have."""
        return self.taken["capture"] - self.taken["refund"] if kind == "refund" else self.rest

    def verdict(self, kind: str, reference: str, amount: int) -> str | None:
        """Return the code with which the movement must be refused, or None if it must be applied."""
        if (kind, reference) in self.used:
            return "duplicate_reference"
        if not self.completed:
            return "order_not_completed"
        if kind != "refund" and (self.lapsed or (self.ended and self.rest)):
            return "authorization_expired"
        if amount > self.limit(kind):
            return {
                "capture": "capture_exceeds_authorized",
                "void": "void_exceeds_uncaptured",
                "refund": "refund_exceeds_captured",
            }[kind]
        return None

    def apply(self, kind: str, reference: str, amount: int) -> Counter[int]:
        """Apply the movement. Return the cents that go back to cards, by installment."""
        self.used[kind, reference] = amount
        self.taken[kind] += amount
        return Counter() if kind == "capture" else self._give_back(amount)

    def lapse(self) -> Counter[int] | None:
        """End the authorization. Return the cents that go back to cards, or None if nothing was left to void."""
        self.ended = True
        if not self.rest:
            return None
        self.lapsed = True
        amount = self.rest
        self.taken["void"] += amount
        return self._give_back(amount)

    def _give_back(self, amount: int) -> Counter[int]:
        given = self.taken["void"] + self.taken["refund"]
        fee_gone = int(Fraction(self.fee * given, self.amount) + Fraction(1, 2))
        gone = [self.cents.pop() for _ in range(amount)]
        while self.fee - len(self.fees) < fee_gone:
            gone.append(self.fees.pop())
        to_cards = Counter(number for number in gone if number in self.paid)
        self.due_to_cards += to_cards.total()
        return to_cards

    def owed(self) -> list[int]:
        """Return the numbers of the installments that a card may still be charged for."""
        standing = self.plan()
        return [n for n in (2, 3, 4) if self.completed and n not in self.paid and sum(standing[n]) > 0]

    def pay(self, number: int, charged: int) -> int:
        """Record the payment of an installment. Return the cents paid too much, if a refund reduced the installment
        meanwhile."""
        excess = charged - sum(self.plan()[number])
        self.paid |= {number}
        self.cents.sort(key=lambda n: (n not in self.paid, n))
        self.fees.sort(key=lambda n: (n not in self.paid, n))
        self.collected += charged
        self.due_to_cards += excess
        return excess

    def returned(self, amount: int) -> None:
        """Record the cents that the card network has returned to cards."""
        self.due_to_cards -= amount
        self.back_on_cards += amount

    def plan(self) -> Plan:
        """Return what is left of each installment: cents of the order, cents of the fee."""
        amounts, fees = Counter(self.cents), Counter(self.fees)
        return {number: (amounts[number], fees[number]) for number in (1, 2, 3, 4)}

    def balances(self) -> dict[str, int]:
        """Return the balances that a refusal of this order shows."""
        return {
            "orderAmount": self.amount - self.taken["void"],
            "captured": self.taken["capture"],
            "voided": self.taken["void"],
            "refunded": self.taken["refund"],
            "capturable": self.rest,
            "voidable": self.rest,
            "refundable": self.limit("refund"),
        }

    def payment_state(self) -> str:
        """Return the order's `paymentState`."""
        if not self.completed:
            return "NONE"
        if self.taken["capture"]:
            return "PARTIALLY_CAPTURED" if self.rest else "CAPTURED"
        if self.rest:
            return "AUTHORIZED"
        return "EXPIRED" if self.lapsed else "VOIDED"

    def accounts(self) -> dict[str, int]:
        """Return every ledger account with a balance: debits minus credits."""
        if not self.completed:
            return {}
        held = {
            "consumer_receivable": sum(n not in self.paid for n in (*self.cents, *self.fees)),
            "authorized_uncaptured": -self.rest,
            "merchant_payable": -self.limit("refund"),
            "card_clearing": self.collected - self.back_on_cards,
            "consumer_refund_due": -self.due_to_cards,
            "plan_fees": -len(self.fees),
        }
        return {account: cents for account, cents in held.items() if cents}
