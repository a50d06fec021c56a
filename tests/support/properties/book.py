"""One order in memory. It applies the decisions of core as `db/order/outcomes.save` would, and does nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from cuota.core.checkout import ending as checkout
from cuota.core.installment import Installment, schedule
from cuota.core.ledger import Transfer
from cuota.core.order.capture import capture
from cuota.core.order.card_refund import settle_card_refund
from cuota.core.order.job import CardRefund, JobState, Settled
from cuota.core.order.movement import Movement, MovementKind, MovementRequest, refuse_duplicate
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.order.refund import refund
from cuota.core.order.void import lapse, void
from cuota.core.plan import collection
from cuota.core.plan.card import PlanCard
from cuota.core.plan.charge import Charge
from cuota.core.plan.payday import timed
from cuota.core.plan.plan import Plan
from cuota.core.risk.decision import Decision, StoredDecision
from support.core.values import MERCHANT, NOW, ORDER, PROFILE, TODAY, charge_id, created, ids

AUTHORIZATION_DAYS = 13


class Book:
    """The order's rows."""

    def __init__(self, amount: int, fee: int, *, auto: bool) -> None:
        self.new_id = ids(10_000)
        self.now: datetime = NOW
        self.order: Order = created(amount, fee, auto_capture=auto)
        self.plan: dict[int, Installment] = {}
        self.transfers: list[Transfer] = []
        self.events = 1
        self.movements: dict[tuple[MovementKind, str], Movement] = {}
        self.due: list[CardRefund] = []
        self.charge: Charge | None = None

    def save(self, outcome: Outcome) -> Outcome:
        """Apply an outcome that was decided on the current state."""
        assert outcome.order.version == self.order.version
        assert (outcome.order.merchant_id, outcome.order.order_id) == (MERCHANT, ORDER)
        assert (outcome.order.transfers, outcome.order.events) == (len(self.transfers), self.events)
        self.transfers += outcome.transfers
        self.events += len(outcome.events)
        self.order = replace(
            outcome.order,
            version=outcome.order.version + 1,
            transfers=len(self.transfers),
            events=self.events,
        )
        self.plan |= {item.number: item for item in outcome.installments}
        self.due += outcome.card_refunds
        if outcome.movement is not None:
            key = (outcome.movement.kind, outcome.movement.reference)
            assert key not in self.movements
            self.movements[key] = outcome.movement
        return outcome

    def try_card(self, *, pays: bool) -> None:
        """Press the payment button once."""
        order = self.order
        first = schedule(order.amount, order.fee, TODAY)[0]
        # A card that pays gets charge 101, so that a test knows the id. A card that fails gets another id.
        charge = charge_id(1) if pays else self.new_id()
        asked = Charge(charge, 1, first.total, self.order.currency, "card_token", "visa", "4242")
        agreed = Plan(
            UUID(int=50), PROFILE, "2125550123", "America/New_York", TODAY, "text", "hash", self.now
        )
        said = Decision(True, ("within_limit",), "v", {}, 600, order.amount)
        decision = StoredDecision(self.new_id(), UUID(int=50), said)
        self.save(checkout.begin(order, agreed, asked, decision, self.now))
        if not pays:
            self.save(checkout.card_failed(self.order, Settled(charge, JobState.FAILED, "no"), self.now))
            return
        plan = schedule(order.amount, order.fee, TODAY)
        plan[0] = replace(plan[0], charge_id=charge)
        plan = timed(plan, UTC, self.now)
        settled = Settled(charge, JobState.SUCCEEDED)
        told = collection.started(plan, self.new_id(), self.now)
        self.save(
            checkout.approve(self.order, plan, settled, self.new_id(), told, self.now, AUTHORIZATION_DAYS)
        )

    def ask_card(self, number: int) -> int:
        """Charge a card for an installment. Return the cents."""
        card = PlanCard("card_token", "visa", "4242")
        plan = list(self.plan.values())
        outcome = collection.begin(self.order, plan, number, card, charge_id(number), self.now)
        assert outcome is not None
        self.charge = self.save(outcome).charge
        assert self.charge is not None
        return self.charge.amount

    def card_says(self, *, pays: bool) -> Outcome:
        """Apply the card's answer."""
        charge, plan = self.charge, list(self.plan.values())
        assert charge is not None
        self.charge = None
        if pays:
            return self.save(collection.paid(self.order, plan, charge, UTC, self.now, self.new_id))
        return self.save(
            collection.failed(self.order, plan, charge, "card_declined", UTC, self.now, self.new_id)
        )

    def move(self, kind: MovementKind, reference: str, amount: int) -> Outcome:
        """Capture, void or refund. The idempotency key is checked first, as in the flow. Raises Refused."""
        asked = MovementRequest(kind, reference, amount)
        if earlier := self.movements.get((kind, reference)):
            raise refuse_duplicate(self.order, asked, earlier, "then")
        plan = list(self.plan.values())
        if kind is MovementKind.CAPTURE:
            return self.save(capture(self.order, asked, self.new_id(), self.now))
        give_back = void if kind is MovementKind.VOID else refund
        return self.save(give_back(self.order, plan, asked, self.new_id(), self.now, self.new_id))

    def pass_days(self, days: int) -> None:
        """Let time pass."""
        self.now += timedelta(days=days)

    def lapse(self) -> Outcome | None:
        """Let the worker expire the authorization if its time has ended."""
        outcome = lapse(self.order, list(self.plan.values()), self.new_id(), self.now, self.new_id)
        return None if outcome is None else self.save(outcome)

    def settle(self, index: int, *, succeeds: bool) -> CardRefund:
        """Let the card network answer a card refund that is due."""
        asked = self.due.pop(index)
        self.save(settle_card_refund(self.order, asked, None if succeeds else "card_closed", self.now))
        return asked
