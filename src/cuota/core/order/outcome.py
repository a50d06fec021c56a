"""An outcome holds everything that one decision changes; `db/order/outcomes.save` writes it in one call."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from cuota.core.dispute.dispute import Dispute
from cuota.core.dispute.evidence import Evidence
from cuota.core.dispute.return_notice import ReturnNotice
from cuota.core.installment import Installment
from cuota.core.ledger import Transfer
from cuota.core.order.event import Event
from cuota.core.order.job import CardRefund, Settled
from cuota.core.order.movement import Movement
from cuota.core.order.order import Order
from cuota.core.plan.card import PlanCard
from cuota.core.plan.change import PlanChange
from cuota.core.plan.charge import Charge
from cuota.core.plan.notice import Notice
from cuota.core.plan.plan import Plan
from cuota.core.risk.decision import StoredDecision
from cuota.core.risk.review import Review, ReviewAnswer


@dataclass(frozen=True, slots=True)
class Outcome:
    """One decision. `order` is the new row; its `version` is still the one that was read.

    `more_movements` are further movements of the same decision: a lost chargeback may both void and refund. `review` begins a
    review, `review_answer` ends it.
    """

    order: Order
    events: tuple[Event, ...] = ()
    movement: Movement | None = None
    transfers: tuple[Transfer, ...] = ()
    installments: tuple[Installment, ...] = ()
    card_refunds: tuple[CardRefund, ...] = ()
    plan: Plan | None = None
    charge: Charge | None = None
    charge_settled: Settled | None = None
    card_refunds_settled: tuple[Settled, ...] = ()
    decision: StoredDecision | None = None
    notices: tuple[Notice, ...] = ()
    plan_card: PlanCard | None = None
    more_movements: tuple[Movement, ...] = ()
    disputes: tuple[Dispute, ...] = ()
    evidence: Evidence | None = None
    returned: ReturnNotice | None = None
    plan_change: PlanChange | None = None
    review: Review | None = None
    review_answer: ReviewAnswer | None = None
    at: datetime = field(kw_only=True)

    @property
    def is_about_claims(self) -> bool:
        """True if the outcome changes a dispute or a return notice, which other outcomes leave alone."""
        return bool(self.disputes or self.evidence or self.returned)

    @property
    def is_about_review(self) -> bool:
        """True if the outcome begins or ends a review, which other outcomes leave alone."""
        return self.review is not None or self.review_answer is not None
