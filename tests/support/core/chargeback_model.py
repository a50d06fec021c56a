"""An order with chargebacks, refunds and a consumer's dispute in memory: the pure decisions of `core`, without a database."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.dispute.answer import decide
from cuota.core.dispute.chargeback import ChargebackReport, lose_chargeback, open_chargeback, win_chargeback
from cuota.core.dispute.claims import Claims, after_refund
from cuota.core.dispute.close_dispute import MerchantFees, close_dispute
from cuota.core.dispute.dispute import Dispute, DisputeKind, DisputeOutcome, DisputeParty, DisputeReason
from cuota.core.dispute.open_dispute import DisputeRequest, disputable, open_dispute
from cuota.core.installment import Installment, room, schedule
from cuota.core.ledger import Transfer
from cuota.core.order import posting
from cuota.core.order.capture import capture
from cuota.core.order.card_refund import cover, fail_later, settle_card_refund
from cuota.core.order.job import CardRefund
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.core.order.refund import refund
from cuota.core.order.void import void
from cuota.core.payout.fee import OrderFees

NOW = datetime(2026, 11, 1, tzinfo=UTC)
ZONE = ZoneInfo("America/New_York")
NO_FEES = MerchantFees((), OrderFees())
CHARGES = (UUID(int=101), UUID(int=102), UUID(int=103))
AMOUNT = 40
REASONS = (DisputeReason.NOT_REFUNDED, DisputeReason.NOT_MINE)


@dataclass
class StoredRefund:
    """A card refund, in cents. `by_bank` is the part that lost chargebacks returned."""

    charge_id: UUID
    amount: int
    state: str = "pending"
    by_bank: int = 0

    @property
    def left(self) -> int:
        """What is left for the card."""
        return self.amount - self.by_bank


@dataclass
class ChargebackModel:
    """One order of 40 cents in four payments. `paid` has the cents that each charge took from the card."""

    order: Order
    plan: tuple[Installment, ...]
    paid: dict[UUID, int]
    ids: int = 1000
    disputes: dict[UUID, Dispute] = field(default_factory=dict)
    refunds: dict[UUID, StoredRefund] = field(default_factory=dict)
    ledger: list[Transfer] = field(default_factory=list)

    @classmethod
    def begun(cls, captured: int, payments: int, fee: int) -> ChargebackModel:
        """Return an approved order of which some payments are paid and some cents are captured."""
        plan = tuple(schedule(AMOUNT, fee, date(2026, 11, 1)))
        plan = tuple(
            replace(item, charge_id=CHARGES[nth]) if nth < payments else item for nth, item in enumerate(plan)
        )
        order = Order(
            UUID(int=9), UUID(int=10), 1, Status.APPROVED, "USD", AMOUNT, fee, False, NOW, NOW + timedelta(days=60),
            captured=captured, authorization_expires_at=NOW + timedelta(days=30),
        )  # fmt: skip
        model = cls(order, plan, {item.charge_id: item.total for item in plan if item.charge_id})
        model.ledger += posting.authorization(model.new_id(), AMOUNT, fee)
        for cents in model.paid.values():
            model.ledger += posting.installment_paid(model.new_id(), cents)
        if captured:
            model.ledger += posting.capture(model.new_id(), captured)
        return model

    def new_id(self) -> UUID:
        self.ids += 1
        return UUID(int=self.ids)

    @property
    def now(self) -> datetime:
        return NOW + timedelta(minutes=self.ids)

    def chargebacks(self, *, lost: bool = False) -> list[Dispute]:
        """Return the open chargebacks, or with `lost` the lost ones."""
        of_network = [each for each in self.disputes.values() if each.kind is DisputeKind.CHARGEBACK]
        return [
            each for each in of_network if (each.outcome is DisputeOutcome.LOST if lost else each.is_open)
        ]

    @property
    def mine(self) -> Dispute | None:
        """The consumer's own open dispute."""
        found = (each for each in self.disputes.values() if each.kind is DisputeKind.DISPUTE and each.is_open)
        return next(found, None)

    def posted(self, name: str) -> int:
        return sum(each.amount for each in self.ledger if each.posting == name)

    def borne(self, charge_id: UUID) -> int:
        causes = {each.movement_id for each in self.chargebacks(lost=True) if each.charge_id == charge_id}
        losses = (each for each in self.ledger if each.posting == "chargeback_loss" and each.cause in causes)
        by_bank = (each.by_bank for each in self.refunds.values() if each.charge_id == charge_id)
        return sum(each.amount for each in losses) - sum(by_bank)

    @property
    def claims(self) -> Claims:
        opened = tuple(each for each in self.disputes.values() if each.is_open)
        closed = (
            each for each in self.disputes.values() if each.kind is DisputeKind.DISPUTE and not each.is_open
        )
        unsent = tuple(
            CardRefund(refund_id, each.charge_id, each.left)
            for refund_id, each in self.refunds.items()
            if each.state in {"failed", "pending"}
        )
        borne = {each.charge_id: self.borne(each.charge_id) for each in opened if each.charge_id is not None}
        return Claims(ZONE, opened, None, tuple(closed), frozenset(), unsent, borne)

    def save(self, outcome: Outcome | None) -> None:
        """Store an outcome, as the database does."""
        if outcome is None:
            return
        self.order = outcome.order
        changed = {item.number: item for item in outcome.installments}
        self.plan = tuple(changed.get(item.number, item) for item in self.plan)
        self.disputes.update({each.dispute_id: each for each in outcome.disputes})
        for each in outcome.card_refunds:
            self.refunds[each.card_refund_id] = StoredRefund(each.charge_id, each.amount)
        self.ledger += outcome.transfers
        for transfer in outcome.transfers:
            if transfer.posting == "refund_charged_back":
                self.refunds[transfer.cause].by_bank += transfer.amount
        for settled in outcome.card_refunds_settled:
            self.refunds[settled.job_id].state = settled.state.value

    def step(self, chance: random.Random) -> None:
        """Do one random operation, if it is possible now."""
        chance.choice(_STEPS)(self, chance)


def move_money(model: ChargebackModel, chance: random.Random) -> None:
    kind = chance.choice([MovementKind.CAPTURE, MovementKind.VOID, MovementKind.REFUND, MovementKind.REFUND])
    most = model.order.capturable
    if kind is MovementKind.REFUND:
        free, _ = room(model.plan, model.claims.taken_back)
        most = min(model.order.refundable, free)
    if most <= 0 or (kind is MovementKind.VOID and model.chargebacks()):
        return
    asked, moved_id = MovementRequest(kind, f"m{model.ids}", chance.randint(1, most)), model.new_id()
    if kind is MovementKind.CAPTURE:
        model.save(capture(model.order, asked, moved_id, model.now))
    elif kind is MovementKind.VOID:
        model.save(void(model.order, model.plan, asked, moved_id, model.now, model.new_id))
    else:
        claims = model.claims
        done = refund(
            model.order, model.plan, asked, moved_id, model.now, model.new_id, taken_back=claims.taken_back
        )
        model.save(after_refund(done, model.plan, claims, asked.amount, moved_id))


def charge_back(model: ChargebackModel, chance: random.Random) -> None:
    charge_id = chance.choice(list(model.paid))
    taken = [
        each.amount
        for each in (*model.chargebacks(), *model.chargebacks(lost=True))
        if each.charge_id == charge_id
    ]
    most = model.paid[charge_id] - sum(taken)
    if most <= 0 or len(model.chargebacks()) > 2:
        return
    report = ChargebackReport(
        charge_id, chance.choice(REASONS), chance.randint(1, most), f"dp{model.ids}", model.now
    )
    new_id = model.new_id()
    model.save(open_chargeback(model.order, model.plan, report, model.claims, new_id, model.now))


def network_decides(model: ChargebackModel, chance: random.Random) -> None:
    if not (opened := model.chargebacks()):
        return
    about = model.order, model.plan, chance.choice(opened), model.claims
    if chance.random() < 0.4:
        model.save(win_chargeback(*about, model.now, model.new_id))
    else:
        model.save(lose_chargeback(*about, NO_FEES, model.now, model.new_id))


def dispute(model: ChargebackModel, chance: random.Random) -> None:
    claims, mine = model.claims, model.mine
    if mine is None:
        most = disputable(model.order, model.plan, claims)
        if most > 0:
            asked = DisputeRequest(DisputeReason.NOT_RECEIVED, chance.randint(1, most), DisputeParty.OPERATOR)
            new_id = model.new_id()
            model.save(open_dispute(model.order, model.plan, asked, claims, new_id, model.now, model.new_id))
        return
    answer = chance.choice(["accept", "decide_for_merchant"])
    model.save(decide(model.order, mine, answer, ZONE, model.now, model.new_id))
    decided = model.disputes[mine.dispute_id]
    model.save(
        close_dispute(model.order, model.plan, decided, model.claims, NO_FEES, model.now, model.new_id)
    )


def ask_the_card(model: ChargebackModel, chance: random.Random) -> None:
    """The card's bank accepts or refuses the waiting refunds, or sends back one that it had accepted."""
    refuse, later = chance.random() < 0.3, chance.random() < 0.3
    for refund_id, each in list(model.refunds.items()):
        borne, asked = model.borne(each.charge_id), CardRefund(refund_id, each.charge_id, each.left)
        if each.state == "succeeded" and later:
            model.save(fail_later(model.order, asked, "closed", model.now, borne))
        waits = any(opened.charge_id == each.charge_id for opened in model.chargebacks())
        if each.state != "pending" or waits:
            continue
        if borne > 0:
            model.save(cover(model.order, asked, borne, model.now))
        elif refuse:
            model.save(settle_card_refund(model.order, asked, "no", model.now, borne))
        else:
            model.save(settle_card_refund(model.order, asked, None, model.now))


_STEPS: tuple[Callable[[ChargebackModel, random.Random], None], ...] = (
    move_money, move_money, charge_back, charge_back, network_decides, dispute, ask_the_card,
)  # fmt: skip


def withheld_of(model: ChargebackModel) -> Counter[UUID]:
    """Return the cents that the open chargebacks of each charge withhold."""
    found = Counter[UUID]()
    for each in model.chargebacks():
        assert each.charge_id is not None
        found[each.charge_id] += each.withheld
    return found
