"""A plan whose payments have their times, a charge in progress, and a declined card."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from cuota.core.installment import Installment, next_at
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.plan import collection, payday
from cuota.core.plan.card import PlanCard
from cuota.core.plan.charge import Charge
from support.core.values import NOW, approved, charge_id, ids, plan

ZONE = ZoneInfo("America/New_York")
CARD = PlanCard("card_token", "visa", "4242")
DUE_2 = datetime(2026, 12, 5, tzinfo=ZONE)


def timed(amount: int = 10_000, paid: tuple[int, ...] = (1,)) -> list[Installment]:
    return payday.timed(plan(amount, paid=paid), ZONE, NOW)


def on(agreed: list[Installment], **more: Any) -> Order:
    return approved(sum(item.amount for item in agreed), collect_at=next_at(agreed), **more)


def begun(
    order: Order, agreed: list[Installment], at: datetime, number: int | None = None
) -> tuple[Order, Charge]:
    outcome = collection.begin(order, agreed, number, CARD, charge_id(2), at)
    assert outcome is not None
    assert outcome.charge is not None
    return outcome.order, outcome.charge


def said_no(
    agreed: list[Installment], reason: str = "card_declined", number: int | None = None, at: datetime = DUE_2
) -> Outcome:
    order, charge = begun(on(agreed), agreed, at, number)
    return collection.failed(order, agreed, charge, reason, ZONE, at, ids())
