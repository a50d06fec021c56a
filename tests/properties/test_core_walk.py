"""Applies random operations to random orders, and compares each order with a model that computes differently."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cuota.core.checkout import ending as checkout
from cuota.core.order.movement import MovementKind, shown_balances
from cuota.core.order.order import Final, Status, balances
from cuota.core.refusal import Refused
from support.core.values import NOW, charge_id, held, to_cards
from support.properties.book import AUTHORIZATION_DAYS, Book
from support.properties.model import Model
from support.properties.steady import WALK

KINDS = st.sampled_from(list(MovementKind))
REFERENCES = st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "h"])
ENDS = {
    "approved": Status.APPROVED,
    "left": Status.ABANDONED,
    "late": Status.ABANDONED,
    "cards": Status.DECLINED,
}


class Walk(RuleBasedStateMachine):
    """Each rule is something that can happen to an order. After each rule, the invariants compare the order with the
    model."""

    @initialize(data=st.data(), amount=st.integers(1, 6000), auto=st.booleans(), failures=st.integers(0, 2))
    def begin(self, data: st.DataObject, amount: int, failures: int, *, auto: bool) -> None:
        fee = data.draw(st.just(0) | st.integers(0, amount), label="fee")
        end = data.draw(st.sampled_from(["approved"] * 9 + list(ENDS)), label="end")
        later = data.draw(st.sets(st.integers(2, 4)), label="paid later")
        self.book = Book(amount, fee, auto=auto)
        completed = end == "approved"
        for _ in range(3 if end == "cards" else failures):
            self.book.try_card(pays=False)
        if completed:
            self.book.try_card(pays=True)
        elif end != "cards":
            self.book.save(checkout.abandon(self.book.order, self.book.now, left=end == "left"))
        assert self.book.order.status is ENDS[end]
        self.model = Model(amount, fee, auto=auto, completed=completed)
        for number in sorted(later & {*self.model.owed()}):
            charged = self.book.ask_card(number)
            self.book.card_says(pays=True)
            assert self.model.pay(number, charged) == 0

    @rule(data=st.data(), kind=KINDS, reference=REFERENCES)
    def move(self, data: st.DataObject, kind: MovementKind, reference: str) -> None:
        limit = self.model.limit(kind)
        near = st.sampled_from([1, max(1, limit), limit + 1])
        amount = data.draw(
            near | st.integers(1, max(1, limit)) | st.integers(1, 2 * self.model.amount), label="amount"
        )
        verdict = self.model.verdict(kind, reference, amount)
        before = self.book.order
        if verdict is None:
            outcome = self.book.move(kind, reference, amount)
            expected = {charge_id(n): cents for n, cents in self.model.apply(kind, reference, amount).items()}
            assert to_cards(outcome) == expected
            assert outcome.movement is not None
            assert (outcome.movement.kind, outcome.movement.amount) == (kind, amount)
            return
        with pytest.raises(Refused) as caught:
            self.book.move(kind, reference, amount)
        assert caught.value.code == verdict
        assert caught.value.facts["balances"] == shown_balances(before)
        if verdict == "duplicate_reference":
            original: Any = caught.value.facts["original"]
            earlier = self.model.used[kind, reference]
            assert (original["amount"] * 100, original["sameRequest"]) == (earlier, earlier == amount)

    @precondition(lambda self: self.model.owed() and self.book.charge is None)
    @rule(data=st.data())
    def ask_a_card_for_an_installment(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.model.owed()), label="number")
        assert self.book.ask_card(number) == sum(self.model.plan()[number])
        assert self.book.order.charging == charge_id(number)

    @precondition(lambda self: self.book.charge is not None)
    @rule(pays=st.booleans())
    def the_card_answers(self, *, pays: bool) -> None:
        charge = self.book.charge
        assert charge is not None
        outcome = self.book.card_says(pays=pays)
        excess = self.model.pay(charge.installment, charge.amount) if pays else 0
        assert to_cards(outcome) == ({charge.charge_id: excess} if excess else {})

    @rule(days=st.integers(1, 8))
    def wait(self, days: int) -> None:
        self.book.pass_days(days)
        over = (self.book.now - NOW).days >= AUTHORIZATION_DAYS
        # An auto capture has no authorization that could end.
        self.model.ended = over and self.book.order.authorization_expires_at is not None

    @rule()
    def look_for_the_end_of_the_authorization(self) -> None:
        expected = self.model.lapse() if self.model.ended else None
        outcome = self.book.lapse()
        assert (outcome is None) == (expected is None)
        if outcome is not None and expected is not None:
            assert to_cards(outcome) == {charge_id(n): cents for n, cents in expected.items()}

    @precondition(lambda self: self.book.due)
    @rule(data=st.data(), succeeds=st.booleans())
    def settle_a_card_refund(self, data: st.DataObject, *, succeeds: bool) -> None:
        index = data.draw(st.integers(0, len(self.book.due) - 1))
        asked = self.book.settle(index, succeeds=succeeds)
        if succeeds:
            self.model.returned(asked.amount)

    @rule(left=st.booleans())
    def leave_again(self, *, left: bool) -> None:
        with pytest.raises(Final):
            checkout.abandon(self.book.order, self.book.now, left=left)

    @invariant()
    def the_totals_agree(self) -> None:
        assert balances(self.book.order) == self.model.balances()
        assert self.book.order.payment_state == self.model.payment_state()
        assert self.book.order.fee_returned == self.model.fee - len(self.model.fees)

    @invariant()
    def the_plan_agrees_and_keeps_its_law(self) -> None:
        order, plan = self.book.order, self.book.plan
        if not self.model.completed:
            assert not plan
            return
        assert {number: (item.amount, item.fee) for number, item in plan.items()} == self.model.plan()
        assert sum(item.amount for item in plan.values()) == order.amount - order.voided - order.refunded
        assert {number for number, item in plan.items() if item.paid} == self.model.paid
        returned = sum(item.returned for item in plan.values())
        assert returned == self.model.due_to_cards + self.model.back_on_cards

    @invariant()
    def what_is_due_next_is_what_the_plan_says(self) -> None:
        times = [item.charge_at for item in self.book.plan.values() if item.charge_at and item.total]
        times += [item.remind_at for item in self.book.plan.values() if item.remind_at and item.total]
        assert self.book.order.collect_at == min(times, default=None)
        assert (self.book.order.charging is None) == (self.book.charge is None)

    @invariant()
    def the_ledger_agrees_and_balances(self) -> None:
        accounts = {account.value: cents for account, cents in held(self.book.transfers).items()}
        assert accounts == self.model.accounts()
        assert sum(accounts.values()) == 0


Walk.TestCase.settings = WALK
TestWalk = Walk.TestCase
