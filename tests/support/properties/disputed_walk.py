"""A walk of refunds, disputes, chargebacks, voids, card refunds, payouts and payments in every order, against a small model.

The model counts cents by hand: who has paid how much, and who got how much back.
"""

from __future__ import annotations

import contextlib
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cuota.core.dispute.dispute import Dispute, DisputeKind, DisputeOutcome, DisputeParty, DisputeStatus
from cuota.core.dispute.open_dispute import disputable
from cuota.core.installment import room
from cuota.core.ledger import Account
from cuota.core.order.movement import MovementKind
from cuota.core.order.outcome import Outcome
from cuota.core.refusal import Refused
from support.core.values import charge_id, held
from support.properties.disputed_book import DisputedBook

MOVES = st.sampled_from(["accept", "expire", "decide_for_merchant", "decide_for_consumer"])


class DisputeWalk(RuleBasedStateMachine):
    """The rules are the possible events. The invariants say that nobody is credited twice, and that nothing withheld is paid out."""

    @initialize(
        data=st.data(), amount=st.integers(4, 6000), auto=st.booleans(), later=st.sets(st.integers(2, 4))
    )
    def begin(self, data: st.DataObject, amount: int, later: set[int], *, auto: bool) -> None:
        fee = data.draw(st.just(0) | st.integers(0, amount // 4), label="fee")
        self.book = DisputedBook(amount, fee, auto=auto)
        self.book.try_card(pays=True)
        # In cents: what cards have paid, what networks took back and not returned, and what cards got back.
        self.paid = {charge_id(1): self.book.plan[1].total}
        self.taken: dict[UUID, int] = {}
        self.back: dict[UUID, int] = {}
        if not auto and data.draw(st.booleans(), label="captured"):
            self.book.move(MovementKind.CAPTURE, "first", amount)
        for number in sorted(later):
            self.pay(number)

    @property
    def to_cards(self) -> int:
        return sum(self.back.values())

    def tally(self, outcome: Outcome) -> None:
        """Count the new card refunds. No refund goes to a card whose bank already took that money back."""
        for each in outcome.card_refunds:
            charge = each.charge_id
            self.back[charge] = self.back.get(charge, 0) + each.amount
            assert self.back[charge] + self.taken.get(charge, 0) <= self.paid[charge]

    def pay(self, number: int) -> None:
        if self.book.plan[number].paid or not self.book.plan[number].total:
            return
        cents = self.book.ask_card(number)
        outcome = self.book.card_says(pays=True)
        self.paid[charge_id(number)] = cents
        self.tally(outcome)

    @rule(number=st.integers(2, 4))
    def the_consumer_pays(self, number: int) -> None:
        self.pay(number)

    @rule(data=st.data(), kind=st.sampled_from([MovementKind.CAPTURE, MovementKind.VOID]))
    def capture_or_void(self, data: st.DataObject, kind: MovementKind) -> None:
        most = max(1, self.book.order.capturable)
        amount = data.draw(st.just(most) | st.integers(1, most), label="amount")
        with contextlib.suppress(Refused):
            outcome = self.book.move(kind, str(self.book.new_id()), amount)
            self.tally(outcome)

    @rule(data=st.data())
    def refund(self, data: st.DataObject) -> None:
        free, _ = room(self.book.parts, self.book.claims.taken_back)
        most = min(self.book.order.refundable, free)
        if not most:
            with pytest.raises(Refused):
                self.book.refund(1)
            return
        with pytest.raises(Refused):
            self.book.refund(most + 1)
        outcome = self.book.refund(data.draw(st.just(most) | st.integers(1, most), label="amount"))
        self.tally(outcome)

    @rule(data=st.data())
    def open_dispute(self, data: st.DataObject) -> None:
        most = disputable(self.book.order, self.book.parts, self.book.claims)
        if self.book.order.disputed or not most:
            with pytest.raises(Refused):
                self.book.dispute(1)
            return
        self.book.dispute(data.draw(st.just(most) | st.integers(1, most), label="amount"))

    def one_open(self, data: st.DataObject, kind: DisputeKind) -> Dispute | None:
        among = [each for each in self.book.open if each.kind is kind]
        return data.draw(st.sampled_from(among), label="dispute") if among else None

    @precondition(lambda self: self.book.open)
    @rule(data=st.data(), move=MOVES)
    def decide(self, data: st.DataObject, move: str) -> None:
        dispute = data.draw(st.sampled_from(self.book.open), label="dispute")
        with contextlib.suppress(Refused):
            self.book.decide(dispute, move)

    @precondition(lambda self: self.book.open)
    @rule(data=st.data(), party=st.sampled_from([DisputeParty.CONSUMER, DisputeParty.MERCHANT]))
    def appeal_or_send_evidence(self, data: st.DataObject, party: DisputeParty) -> None:
        dispute = data.draw(st.sampled_from(self.book.open), label="dispute")
        with contextlib.suppress(Refused):
            if data.draw(st.booleans(), label="appeal"):
                self.book.appeal(dispute, party)
            else:
                self.book.submit(dispute)

    @rule(data=st.data(), withdraws=st.booleans())
    def close_or_withdraw(self, data: st.DataObject, *, withdraws: bool) -> None:
        dispute = self.one_open(data, DisputeKind.DISPUTE)
        if dispute is None:
            return
        if withdraws:
            self.book.withdraw(dispute)
        elif (
            dispute.due_at is not None and dispute.due_at <= self.book.now and dispute.decided_at is not None
        ):
            outcome = self.book.close(dispute)
            self.tally(outcome)

    @rule(data=st.data())
    def charge_back(self, data: st.DataObject) -> None:
        among = sorted(set(self.paid) - set(self.taken))
        if among:
            charge = data.draw(st.sampled_from(among), label="charge")
            amount = data.draw(st.just(self.paid[charge]) | st.integers(1, self.paid[charge]), label="amount")
            self.book.charge_back(charge, amount)
            self.taken[charge] = amount

    @rule(data=st.data(), won=st.booleans())
    def the_network_decides(self, data: st.DataObject, *, won: bool) -> None:
        dispute = self.one_open(data, DisputeKind.CHARGEBACK)
        if dispute is not None:
            assert dispute.charge_id is not None
            self.book.network_decides(dispute, won=won)
            if won:
                self.taken[dispute.charge_id] = 0

    @rule()
    def send_the_goods_back(self) -> None:
        with contextlib.suppress(Refused):
            self.book.send_back()

    @rule(days=st.integers(1, 12))
    def wait(self, days: int) -> None:
        self.book.pass_days(days)
        outcome = self.book.lapse()
        if outcome is not None:
            self.tally(outcome)

    @rule()
    def pay_out(self) -> None:
        self.book.pay_out()
        order = self.book.order
        withheld = sum(each.withheld for each in self.book.open)
        # Earlier payouts may exceed what is due now. In that case, nothing more is paid.
        assert self.book.pay_out() == 0
        assert self.book.paid_out >= order.captured - order.refunded - withheld

    @precondition(lambda self: self.book.due)
    @rule(data=st.data())
    def a_card_refund_arrives(self, data: st.DataObject) -> None:
        self.book.settle(data.draw(st.integers(0, len(self.book.due) - 1)), succeeds=True)

    @invariant()
    def nobody_is_credited_twice(self) -> None:
        order = self.book.order
        paid, taken = sum(self.paid.values()), sum(self.taken.values())
        unpaid = sum(item.total for item in self.book.parts if not item.paid)
        undecided = sum(each.amount for each in self.book.chargebacks() if each.is_open)
        losses = held(self.book.transfers).get(Account.LOSSES, 0)
        owed = order.amount + order.fee - order.voided - order.refunded - order.fee_returned
        # The consumer's final payments and remaining debt together equal the price of the goods that the consumer keeps.
        assert paid - self.to_cards - taken + undecided + losses + unpaid == owed
        assert order.refunded + order.disputed + order.charged_back <= order.captured

    @invariant()
    def cuota_loses_only_what_it_could_not_hold_back(self) -> None:
        losses = held(self.book.transfers).get(Account.LOSSES, 0)
        lost = [each for each in self.book.chargebacks() if each.outcome is DisputeOutcome.LOST]
        assert 0 <= losses <= sum(each.amount for each in lost)

    @invariant()
    def the_order_counts_its_disputes(self) -> None:
        order, unclosed = self.book.order, self.book.open
        of_consumer = [each for each in unclosed if each.kind is DisputeKind.DISPUTE]
        assert len(of_consumer) <= 1
        assert order.open_disputes == len(unclosed)
        assert order.disputed == sum(each.withheld for each in of_consumer)
        assert order.charged_back == sum(each.withheld for each in unclosed) - order.disputed
        assert (order.paused_at is not None) == bool(unclosed)
        assert all(not each.withheld for each in self.book.disputes.values() if not each.is_open)

    @invariant()
    def nothing_is_scheduled_while_disputed(self) -> None:
        if self.book.order.paused_at is not None:
            assert all(item.charge_at is None or item.paid or not item.total for item in self.book.parts)
            assert self.book.order.collect_at is None

    @invariant()
    def every_payment_has_its_day_while_nothing_is_disputed(self) -> None:
        """Also after a lost chargeback. On the day, the flow asks for another card (flows/plan/collect_installments.py)."""
        if self.book.order.paused_at is None:
            left = [item for item in self.book.parts if not item.paid and item.total and not item.failures]
            assert all(item.charge_at is not None for item in left)
            assert not left or self.book.order.collect_at is not None

    @invariant()
    def the_plan_keeps_its_law(self) -> None:
        order = self.book.order
        assert sum(item.amount for item in self.book.parts) == order.amount - order.voided - order.refunded
        assert sum(item.fee for item in self.book.parts) == order.fee - order.fee_returned
        assert all(item.amount >= 0 and item.fee >= 0 and item.returned >= 0 for item in self.book.parts)

    @invariant()
    def the_ledger_agrees(self) -> None:
        order, accounts = self.book.order, held(self.book.transfers)
        withheld = order.disputed + order.charged_back
        expected = {
            Account.CONSUMER_RECEIVABLE: sum(item.total for item in self.book.parts if not item.paid),
            Account.AUTHORIZED_UNCAPTURED: -(order.amount - order.captured - order.voided),
            Account.MERCHANT_PAYABLE: -(order.captured - order.refunded - withheld),
            Account.DISPUTES_WITHHELD: -withheld,
            Account.CHARGEBACKS: sum(each.amount for each in self.book.chargebacks() if each.is_open),
            Account.PLAN_FEES: -(order.fee - order.fee_returned),
        }
        assert {account: accounts.get(account, 0) for account in expected} == expected
        assert sum(accounts.values()) == 0

    @invariant()
    def a_decided_dispute_waits_for_the_appeal(self) -> None:
        for each in self.book.open:
            decided = each.status in {DisputeStatus.WON, DisputeStatus.LOST}
            if each.kind is DisputeKind.DISPUTE:
                assert decided == (each.appeal_by is not None)
