"""Changes in hardship mixed with captures, voids, refunds, collection, early payments and write-offs, against a model."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cuota.core.order.movement import MovementKind
from cuota.core.order.order import balances
from cuota.core.plan.hardship import (
    SMALLEST_PAYMENT,
    CannotChange,
    MoveDates,
    PausePlan,
    SmallerPayments,
    WaiveFee,
)
from cuota.core.refusal import Refused
from support.core.values import TODAY, charge_id, held
from support.long_run import LONG
from support.properties.hardship_book import HardshipBook, altered
from support.properties.hardship_model import HardshipModel
from support.properties.steady import WALK


class HardshipWalk(RuleBasedStateMachine):
    """The rules are what can happen to an agreed plan; the invariants compare it with the model after each."""

    @initialize(data=st.data(), amount=st.integers(4, 6000), auto=st.sampled_from([True, True, False]))
    def begin(self, data: st.DataObject, amount: int, *, auto: bool) -> None:
        fee = data.draw(st.just(0) | st.integers(1, amount // 2), label="fee")
        self.book = HardshipBook(amount, fee, auto=auto)
        self.book.try_card(pays=True)
        self.book.paid_by[charge_id(1)] = 1, self.book.plan[1].total
        self.model = HardshipModel(amount, fee, TODAY, auto=auto)

    @property
    def idle(self) -> bool:
        return self.book.charge is None

    def refused(self, request: MoveDates | PausePlan | SmallerPayments | WaiveFee) -> None:
        before = self.book.before
        with pytest.raises(CannotChange):
            self.book.change(request)
        assert self.book.before == before

    @rule(data=st.data(), kind=st.sampled_from(list(MovementKind)))
    def move_money(self, data: st.DataObject, kind: MovementKind) -> None:
        limit = self.model.limit(kind)
        amount = data.draw(st.just(max(1, limit)) | st.integers(1, max(1, limit)), label="amount")
        reference = str(self.book.new_id())
        if self.model.verdict(kind, reference, amount) is None:
            self.book.move(kind, reference, amount)
            self.model.apply(kind, reference, amount)
        else:
            with pytest.raises(Refused):
                self.book.move(kind, reference, amount)

    @rule(days=st.integers(1, 40))
    def wait(self, days: int) -> None:
        self.book.pass_days(days)
        over = self.book.order.authorization_expires_at
        self.model.ended = over is not None and self.book.now >= over
        if self.model.ended and self.book.lapse() is not None:
            self.model.lapse()

    @precondition(lambda self: self.idle and self.model.owed())
    @rule(data=st.data())
    def pay_early(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.model.owed()), label="number")
        assert self.book.begin_charge(number)

    @precondition(lambda self: self.idle)
    @rule()
    def collect(self) -> None:
        self.book.begin_charge(None)

    @precondition(lambda self: not self.idle)
    @rule(pays=st.booleans())
    def the_card_answers(self, *, pays: bool) -> None:
        charge = self.book.charge
        assert charge is not None
        self.book.card_says(pays=pays)
        if pays:
            self.model.pay(charge.installment, charge.amount)

    @precondition(lambda self: self.idle and self.book.order.capturable == 0)
    @rule(days=st.integers(10, 60))
    def fall_behind(self, days: int) -> None:
        """For some days, every charge is declined."""
        for _ in range(days):
            self.book.pass_days(1)
            if self.book.begin_charge(None):
                self.book.card_says(pays=False)

    @rule()
    def write_off(self) -> None:
        outcome = self.book.write_off()
        for item in outcome.installments if outcome is not None else ():
            self.model.write_off(item.number)

    @rule(days=st.integers(1, 60))
    def pause(self, days: int) -> None:
        left = self.model.changeable()
        if not self.idle or not left:
            self.refused(PausePlan(days))
            return
        late = (self.book.now.date() - min(self.model.days[number] for number in left)).days
        self.book.change(PausePlan(days))
        self.model.postpone(days + max(0, late))
        assert all(self.book.plan[number].state == "scheduled" for number in left)

    @rule(data=st.data())
    def move_dates(self, data: st.DataObject) -> None:
        left = self.model.changeable()
        if not self.idle or not left:
            self.refused(MoveDates({2: self.book.now.date() + timedelta(days=9)}))
            return
        last = max(self.book.now.date(), *(self.model.days[number] for number in left))
        days = {}
        for number in left:
            last += timedelta(days=data.draw(st.integers(1, 9), label="later"))
            days[number] = last
        self.book.change(MoveDates(days))
        self.model.days |= days

    @rule(data=st.data(), parts=st.integers(2, 12), every=st.integers(7, 31))
    def smaller_payments(self, data: st.DataObject, parts: int, every: int) -> None:
        left = self.model.changeable()
        today = self.book.now.date()
        if not self.idle or not left:
            self.refused(SmallerPayments(parts, every, today + timedelta(days=1)))
            return
        soonest = max(today + timedelta(days=1), min(self.model.days[number] for number in left))
        first = soonest + timedelta(days=data.draw(st.integers(0, 20), label="first"))
        request = SmallerPayments(parts, every, first)
        total = sum(sum(self.model.plan()[number]) for number in left)
        try:
            self.book.change(request)
        except CannotChange:
            # Too few, too small, too many in all, or more due on a day than before: the plan is as it was.
            early = any(
                sum(total // parts for _ in range(index + 1))
                > sum(sum(self.model.plan()[n]) for n in left if self.model.days[n] <= first + timedelta(days=every * index)) - parts
                for index in range(parts)
            )  # fmt: skip
            small = total < SMALLEST_PAYMENT * parts + 2 * parts
            assert parts <= len(left) or small or early or len(self.model.days) + parts > 40
            return
        self.model.divide(parts, every, first)

    @rule(data=st.data())
    def waive(self, data: st.DataObject) -> None:
        left = self.model.changeable()
        most = sum(self.model.plan()[number][1] for number in left)
        if not self.idle or not most:
            self.refused(WaiveFee(1))
            return
        self.refused(WaiveFee(most + 1))
        cents = data.draw(st.just(most) | st.integers(1, most), label="cents")
        self.book.change(WaiveFee(cents))
        self.model.waive(cents)

    @rule()
    def change_a_plan_that_has_changed(self) -> None:
        before = self.book.before
        with pytest.raises(CannotChange):
            self.book.change(PausePlan(7), mark="another")
        assert self.book.before == before

    @precondition(lambda self: self.book.due)
    @rule(data=st.data())
    def a_card_refund_arrives(self, data: st.DataObject) -> None:
        asked = self.book.settle(data.draw(st.integers(0, len(self.book.due) - 1)), succeeds=True)
        self.model.returned(asked.amount)

    @invariant()
    def the_totals_agree(self) -> None:
        assert balances(self.book.order) == self.model.balances()
        assert self.book.order.fee_returned == self.model.fee - len(self.model.fees)

    @invariant()
    def the_plan_agrees_to_the_cent_and_to_the_day_and_keeps_its_law(self) -> None:
        order, plan = self.book.order, self.book.plan
        assert {number: (item.amount, item.fee) for number, item in plan.items()} == self.model.plan()
        assert {number: item.due_on for number, item in plan.items()} == self.model.days
        assert sorted(plan) == list(range(1, len(plan) + 1))
        assert sum(item.amount for item in plan.values()) == order.amount - order.voided - order.refunded
        assert sum(item.fee for item in plan.values()) == order.fee - order.fee_returned

    @invariant()
    def the_ledger_agrees_and_balances(self) -> None:
        accounts = {account.value: cents for account, cents in held(self.book.transfers).items()}
        assert accounts == self.model.accounts()
        assert sum(accounts.values()) == 0

    @invariant()
    def nothing_is_charged_before_its_day(self) -> None:
        for item in self.book.plan.values():
            if item.charge_at is not None and item.total and not item.paid and not item.failures:
                assert item.charge_at.date() == item.due_on

    @invariant()
    def verify_finds_nothing(self) -> None:
        assert self.book.verified() == []

    def teardown(self) -> None:
        """`cuota verify` finds a single cent or a single day that was altered."""
        if not hasattr(self, "book"):
            return
        parts = self.book.parts
        takes = next((index for index, item in enumerate(parts) if item.amount), None)
        if takes is not None and len(parts) > 1:
            gets = (takes + 1) % len(parts)
            forged = [
                altered(item, -1 if n == takes else 1 if n == gets else 0) for n, item in enumerate(parts)
            ]
            assert self.book.verified(forged) != []
        for index, change in enumerate(self.book.changes):
            for each in (self._with_a_cent(change), self._with_a_day(change)):
                forged_changes = [*self.book.changes[:index], each, *self.book.changes[index + 1 :]]
                assert self.book.verified(changes=forged_changes) != []

    @staticmethod
    def _with_a_cent(change: object) -> object:
        first, *rest = change.before  # type: ignore[attr-defined]
        return replace(change, before=(first._replace(amount=first.amount + 1), *rest))  # type: ignore[type-var]

    @staticmethod
    def _with_a_day(change: object) -> object:
        first, *rest = change.before  # type: ignore[attr-defined]
        return replace(change, before=(first._replace(due_on=first.due_on + timedelta(days=1)), *rest))  # type: ignore[type-var]


# More examples than other walks: a plan falls behind and is written off only after many steps.
HardshipWalk.TestCase.settings = settings(WALK, max_examples=600 if LONG else 120)
TestHardshipWalk = HardshipWalk.TestCase
