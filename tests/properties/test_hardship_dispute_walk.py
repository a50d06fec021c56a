"""The walk of disputes, chargebacks and return notices, with changes of the plan in hardship in between."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from cuota.core.order.change_plan import Agreeing, PlanBefore, change_plan
from cuota.core.plan.change import PlanChange
from cuota.core.plan.hardship import (
    CannotChange,
    HardshipRequest,
    MoveDates,
    PausePlan,
    SmallerPayments,
    WaiveFee,
)
from support.long_run import LONG
from support.properties.disputed_walk import DisputeWalk
from support.properties.hardship_book import ABOUT, POLICY
from support.properties.steady import WALK


class HardshipDisputeWalk(DisputeWalk):
    """Everything that the walk of disputes does, and the four changes of a plan."""

    @property
    def changes(self) -> list[PlanChange]:
        if not hasattr(self, "_changes"):
            self._changes: list[PlanChange] = []
        return self._changes

    def change(self, request: HardshipRequest) -> None:
        """Change the plan if that is possible now. While a dispute is open, it is not."""
        book = self.book
        before = PlanBefore(book.order, tuple(book.parts), tuple(self.changes), UTC, ABOUT)
        agreeing = Agreeing(book.new_id(), "Ana", b"why", before.mark, book.now)
        if book.open:
            with pytest.raises(CannotChange):
                change_plan(before, request, POLICY, agreeing, book.new_id)
            return
        with contextlib.suppress(CannotChange):
            made = book.save(change_plan(before, request, POLICY, agreeing, book.new_id)).plan_change
            assert made is not None
            self.changes.append(made)
            # As save_plan_change does: the change decides the days of all payments.
            for each in book.returns.values():
                if each.ended_at is None:
                    book.returns[each.return_id] = replace(each, installment=None, due_on=None)

    @rule(days=st.integers(1, 40))
    def pause(self, days: int) -> None:
        self.change(PausePlan(days))

    @rule(parts=st.integers(2, 12), every=st.integers(7, 31), first=st.integers(1, 40))
    def smaller_payments(self, parts: int, every: int, first: int) -> None:
        self.change(SmallerPayments(parts, every, self.book.now.date() + timedelta(days=first)))

    @rule(later=st.integers(1, 20))
    def move_dates(self, later: int) -> None:
        left = [item for item in self.book.parts if not item.paid and item.total]
        today = self.book.now.date()
        days = {item.number: max(item.due_on, today) + timedelta(days=later) for item in left}
        self.change(MoveDates(days))

    @rule(data=st.data())
    def waive(self, data: st.DataObject) -> None:
        most = sum(item.fee for item in self.book.parts if not item.paid)
        self.change(WaiveFee(data.draw(st.integers(1, max(1, most)), label="cents")))

    @rule(data=st.data())
    def the_consumer_pays_any(self, data: st.DataObject) -> None:
        self.pay(data.draw(st.sampled_from(sorted(self.book.plan)), label="number"))

    @invariant()
    def the_numbers_have_no_gaps_and_a_change_only_makes_payments_later(self) -> None:
        assert sorted(self.book.plan) == list(range(1, len(self.book.plan) + 1))
        for change in self.changes:
            for old, new in zip(change.before, change.after, strict=False):
                if len(change.before) == len(change.after):
                    assert new.due_on >= old.due_on
                assert sum(each.amount for each in change.before) == sum(each.amount for each in change.after)

    @invariant()
    def no_payment_is_due_before_the_day_of_the_last_change(self) -> None:
        for each in self.changes[-1].after if self.changes else ():
            assert self.book.plan[each.number].due_on >= each.due_on


HardshipDisputeWalk.TestCase.settings = settings(
    WALK, max_examples=1500 if LONG else 150, stateful_step_count=40
)
TestHardshipDisputeWalk = HardshipDisputeWalk.TestCase
