"""Changes a plan for a consumer in hardship."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from uuid import UUID

from cuota.core.installment import Installment, next_at
from cuota.core.order import posting
from cuota.core.order.give_back import standing
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.core.plan.change import ChangeKind, PlanChange, PlannedPayment, planned
from cuota.core.plan.change_words import ChangedOrder, change_text, hash_of, summary
from cuota.core.plan.hardship import (
    CannotChange,
    HardshipPolicy,
    HardshipRequest,
    NewPlan,
    changeable,
    new_plan,
)
from cuota.core.plan.notice import Notice, NoticeKind
from cuota.core.plan.payday import Days

BUSY = "A card is being charged for this plan right now. Nothing was changed. Try again in a minute."
DISPUTED = (
    "A dispute about this order is open, so its payments are paused already. Nothing was changed. Change the plan when the dispute"
    " is closed."
)
CHANGED_MEANWHILE = (
    "The plan has changed since you looked at it: somebody else changed it, a payment arrived, or money was given back. Nothing was"
    " changed. Look at the plan as it is now."
)


@dataclass(frozen=True, slots=True)
class PlanBefore:
    """A plan to change: the order, its installments and earlier changes, and the consumer's time zone."""

    order: Order
    plan: tuple[Installment, ...]
    earlier: tuple[PlanChange, ...]
    zone: tzinfo
    about: ChangedOrder

    @property
    def mark(self) -> str:
        """A hash that differs after every change of the plan. A form sends it back."""
        rows = [[*map(str, each), item.charge_id is not None, item.failures]
                for each, item in zip(planned(self.plan), self.plan, strict=True)]  # fmt: skip
        return hashlib.sha256(json.dumps([len(self.earlier), rows]).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Agreeing:
    """Who changes a plan, when, and why. `reason` is encrypted. `mark` is PlanBefore.mark of the plan that the person saw."""

    change_id: UUID
    by: str
    reason: bytes
    mark: str
    now: datetime


def preview(before: PlanBefore, request: HardshipRequest, policy: HardshipPolicy, now: datetime) -> NewPlan:
    """Return the plan that a request would produce. Raises CannotChange."""
    order = before.order
    if order.status is not Status.APPROVED:
        raise CannotChange("The order has no plan: it was not approved.")
    if order.charging is not None:
        raise CannotChange(BUSY)
    if order.paused_at is not None:
        raise CannotChange(DISPUTED)
    return new_plan(request, before.plan, before.earlier, policy, before.zone, now)


def change_plan(
    before: PlanBefore,
    request: HardshipRequest,
    policy: HardshipPolicy,
    agreeing: Agreeing,
    new_id: Callable[[], UUID],
) -> Outcome:
    """Return the outcome of a change. Raises CannotChange, also if the plan is not the one that the person saw."""
    if agreeing.mark != before.mark:
        raise CannotChange(CHANGED_MEANWHILE)
    order, now = before.order, agreeing.now
    new = preview(before, request, policy, now)
    notice = _notice(new, before.zone, now, new_id())
    return Outcome(
        order=replace(
            order, collect_at=next_at(new.plan), fee_returned=order.fee_returned + new.waived
        ),
        installments=_differing(before.plan, new.plan),
        transfers=tuple(posting.fee_waived(agreeing.change_id, new.waived)),
        notices=(notice,),
        plan_change=_change(before, new, agreeing, notice.notice_id),
        at=now,
    )  # fmt: skip


def left_of(plan: Sequence[Installment]) -> tuple[PlannedPayment, ...]:
    """Return the payments that are left and can be changed."""
    return planned(changeable(plan))


def said_of(before: PlanBefore, new: NewPlan) -> str:
    """Return the change in one sentence for the consumer."""
    return summary(new.kind, new.days, new.waived, left_of(new.plan), before.order.currency)


def text_of(before: PlanBefore, new: NewPlan, now: datetime) -> str:
    """Return the text of the change, as it is stored and sent."""
    on = now.astimezone(before.zone).date()
    return change_text(before.about, on, said_of(before, new), left_of(before.plan), left_of(new.plan))


def _change(before: PlanBefore, new: NewPlan, agreeing: Agreeing, message_id: UUID) -> PlanChange:
    text = text_of(before, new, agreeing.now)
    return PlanChange(
        len(before.earlier) + 1, agreeing.change_id, ChangeKind(new.kind), agreeing.now, agreeing.by, new.days, new.waived,
        before.order.transfers, planned(before.plan), planned(new.plan), agreeing.reason, text, hash_of(text), message_id,
    )  # fmt: skip


def _differing(before: Sequence[Installment], after: Sequence[Installment]) -> tuple[Installment, ...]:
    known = {item.number: item for item in before}
    return tuple(item for item in after if known.get(item.number) != item)


def _notice(new: NewPlan, zone: tzinfo, now: datetime, notice_id: UUID) -> Notice:
    left = changeable(new.plan)
    first = (left or new.plan)[0]
    return Notice(
        notice_id, NoticeKind.PLAN_CHANGED, first.number, first.total, first.due_on, Days(zone).daytime(now),
        standing(new.plan, zone=zone),
    )  # fmt: skip
