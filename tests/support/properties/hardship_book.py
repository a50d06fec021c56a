"""An order in memory whose plan is collected by schedule, changed in hardship, and written off; and what `cuota verify` says about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, replace
from datetime import UTC, timedelta
from typing import Any
from uuid import UUID

from cuota.core.installment import Installment
from cuota.core.order.change_plan import Agreeing, PlanBefore, change_plan
from cuota.core.order.outcome import Outcome
from cuota.core.order.write_off import write_off
from cuota.core.plan import collection
from cuota.core.plan.card import PlanCard
from cuota.core.plan.change import PlanChange
from cuota.core.plan.change_words import ChangedOrder
from cuota.core.plan.hardship import HardshipPolicy, HardshipRequest
from cuota.db.verify import plan_changes, plan_replay
from support.core.values import TODAY
from support.properties.book import Book

WRITE_OFF_DAYS = 30
# These limits are wide, so that a walk can make many changes.
POLICY = HardshipPolicy(move_days=10_000, pause_days=10_000, payments=12, fee_a_year=0)
ABOUT = ChangedOrder("Alder & Oak", "A-1042", "USD", TODAY, "hash")
_CARD = PlanCard("card_token", "visa", "4242")


class HardshipBook(Book):
    """The order's rows, and the changes of its plan."""

    def __init__(self, amount: int, fee: int, *, auto: bool) -> None:
        super().__init__(amount, fee, auto=auto)
        self.changes: list[PlanChange] = []
        # Which installment each charge paid, and how much.
        self.paid_by: dict[UUID, tuple[int, int]] = {}

    @property
    def parts(self) -> list[Installment]:
        return [self.plan[number] for number in sorted(self.plan)]

    @property
    def before(self) -> PlanBefore:
        return PlanBefore(self.order, tuple(self.parts), tuple(self.changes), UTC, ABOUT)

    def begin_charge(self, number: int | None) -> bool:
        """Charge the card for an installment, or for the first that is due. Return False if nothing is due."""
        outcome = collection.begin(self.order, self.parts, number, _CARD, self.new_id(), self.now)
        if outcome is None:
            return False
        self.charge = self.save(outcome).charge
        return True

    def card_says(self, *, pays: bool) -> Outcome:
        charge = self.charge
        assert charge is not None
        if pays:
            self.paid_by[charge.charge_id] = charge.installment, charge.amount
        self.plan = {item.number: item for item in self.parts}
        return super().card_says(pays=pays)

    def change(self, request: HardshipRequest, mark: str | None = None) -> PlanChange:
        """Change the plan. Raises CannotChange."""
        before = self.before
        agreeing = Agreeing(self.new_id(), "Ana", b"why", mark or before.mark, self.now)
        change = self.save(change_plan(before, request, POLICY, agreeing, self.new_id)).plan_change
        assert change is not None
        self.changes.append(change)
        return change

    def write_off(self) -> Outcome | None:
        """Let the worker write off what has been overdue for a long time."""
        outcome = write_off(self.order, self.parts, WRITE_OFF_DAYS, self.now, self.new_id)
        return None if outcome is None else self.save(outcome)

    def verified(
        self, plan: Sequence[Installment] | None = None, changes: Sequence[PlanChange] | None = None
    ) -> list[Any]:
        """Return what `cuota verify` says about a plan and its changes; by default those of the order."""
        made = self.changes if changes is None else changes
        facts = {
            "amount": self.order.amount,
            "fee": self.order.fee,
            "first_day": TODAY,
            "plan": [astuple(item) for item in (self.parts if plan is None else plan)],
            "charged": [
                (charge, number, cents, "succeeded") for charge, (number, cents) in self.paid_by.items()
            ],
            "disputes": [],
            "held_returns": [],
            "erased": False,
            "time_zone": "UTC",
        }
        return [
            *plan_changes.disagreements(facts, made, self.transfers),
            *plan_replay.disagreements(facts, made, self.transfers),
        ]

    def pass_days(self, days: int) -> None:
        self.now += timedelta(days=days)


def altered(item: Installment, cents: int) -> Installment:
    """Return an installment with other cents."""
    return replace(item, amount=item.amount + cents)
