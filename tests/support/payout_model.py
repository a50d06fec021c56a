"""Computes what a merchant must be paid, without the service's code: fees, reserves, payouts, and returned payouts."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from cuota.core.payout.cutoff import pays_at
from cuota.core.payout.terms import RefundFee, SettlementTerms
from support.makers import Merchant


def half_up(part: int, of: int, amount: int) -> int:
    """Return `amount` * `part` / `of`, rounded half up."""
    return (2 * amount * part + of) // (2 * of)


@dataclass
class OrderModel:
    """One order of 1000.00. Amounts are cents."""

    order: dict[str, Any]
    captured: int = 0
    refunded: int = 0
    returnable: int = 0
    returned: int = 0
    voided: int = 0
    # What is left of the first payment, which a card has paid, and of the other payments.
    first: int = 25_000
    others: int = 75_000
    # The open dispute: its id, the cents that it withholds, and its decision once there is one.
    dispute: UUID | None = None
    withheld: int = 0
    lost: bool | None = None
    accepted: bool = False
    # The chargeback of the first payment: None before, True while it is open, False when it is decided.
    charged_back: bool | None = None
    withheld_for_bank: int = 0

    @property
    def capturable(self) -> int:
        return 100_000 - self.captured - self.voided

    @property
    def refundable(self) -> int:
        free = self.others + (0 if self.charged_back else self.first)
        return min(self.captured - self.refunded - self.withheld_for_bank, free)

    @property
    def disputable(self) -> int:
        return 0 if self.dispute else self.refundable

    def give_back(self, cents: int) -> None:
        """Reduce the plan, beginning with the unpaid payments."""
        unpaid = min(self.others, cents)
        self.others -= unpaid
        self.first -= cents - unpaid


@dataclass
class Model:
    """One merchant: its open lines, its reserve and its payouts. `lines` sums the lines by type, in cents."""

    merchant: Merchant
    terms: SettlementTerms
    account: UUID
    paused: bool = False
    open_net: int = 0
    open_moved: int = 0
    held: deque[tuple[datetime, int]] = field(default_factory=deque)
    payouts: list[int] = field(default_factory=list)
    back: dict[UUID, int] = field(default_factory=dict)
    lines: Counter[str] = field(default_factory=Counter)
    orders: list[OrderModel] = field(default_factory=list)
    disputed: list[OrderModel] = field(default_factory=list)

    def line(self, type_: str, net: int) -> None:
        self.lines[type_] += net
        self.open_net += net

    def capture(self, order: OrderModel, cents: int) -> None:
        percent, fixed = half_up(self.terms.percent, 10_000, cents), self.terms.fixed
        match self.terms.refund_fee:
            case RefundFee.PRO_RATA:
                order.returnable += percent
            case RefundFee.RETURNED:
                order.returnable += percent + fixed
        order.captured += cents
        self.open_moved += cents
        self.line("capture", cents)
        self.line("fee", -percent - fixed)

    def refund(self, order: OrderModel, cents: int) -> None:
        order.give_back(cents)
        self.lose(order, cents, "refund")
        self.settle(order, cents)

    def settle(self, order: OrderModel, cents: int) -> None:
        """Reduce the withheld amount by `cents`, because the consumer got them back in another way."""
        less = min(order.withheld, cents)
        order.withheld -= less
        self.line("dispute_released", less)
        if order.dispute and not order.withheld:
            order.dispute = order.lost = None

    def lose(self, order: OrderModel, cents: int, type_: str) -> None:
        order.refunded += cents
        due = max(0, half_up(order.refunded, order.captured, order.returnable) - order.returned)
        order.returned += due
        self.open_moved -= cents
        self.line(type_, -cents)
        self.line("fee_returned", due)

    def came_back(self, payout_id: UUID, cents: int, account: UUID) -> None:
        """Record a payout that the bank refused or returned. If the payout's account is still in force, payouts are
        paused."""
        assert payout_id not in self.back
        self.back[payout_id] = cents
        self.line("payout_returned", cents)
        self.paused = self.paused or account == self.account

    def close(self, cutoff: datetime) -> None:
        if self.paused or not pays_at(self.terms, cutoff):
            return
        due = [item for item in self.held if item[0] <= cutoff]
        released = sum(amount for _, amount in due)
        kept = half_up(self.terms.reserve, 10_000, max(0, self.open_moved))
        amount = self.open_net + released - kept
        pays = amount > 0 and amount >= self.terms.minimum
        if not pays and not (amount <= 0 < amount + kept):
            return
        for item in due:
            self.held.remove(item)
        if kept:
            self.held.append((cutoff + timedelta(days=self.terms.reserve_days), kept))
        self.line("reserve_released", released)
        self.line("reserve_held", -kept)
        self.open_moved = 0
        if pays:
            self.open_net = 0
            self.payouts.append(amount)

    @property
    def reserved(self) -> int:
        return sum(amount for _, amount in self.held)
