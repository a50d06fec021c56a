"""Builders of plain values for the tests of core: an order, a plan, a request, ids that count up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from cuota.core.consumer import Address, Profile
from cuota.core.installment import Installment, schedule
from cuota.core.ledger import Account, Transfer, balance
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
TODAY = date(2026, 11, 21)
MERCHANT = UUID(int=1)
ORDER = UUID(int=2)
MOVEMENT = UUID(int=3)
PROFILE = Profile(
    "Jordan",
    "Rivera",
    "jordan@mail.example",
    Address("1480 Mission Street", "", "San Francisco", "CA", "94103"),
)


def ids(first: int = 1000) -> Callable[[], UUID]:
    """Return a source of ids that count up, so that a test knows them."""
    counter = iter(range(first, first + 1_000_000))
    return lambda: UUID(int=next(counter))


def charge_id(number: int) -> UUID:
    """Return the charge that paid the installment with this number."""
    return UUID(int=100 + number)


def created(amount: int = 10_000, fee: int = 0, **more: Any) -> Order:
    """Return an order whose consumer is still in the checkout. It expires in an hour."""
    values: dict[str, Any] = {
        "merchant_id": MERCHANT, "order_id": ORDER, "version": 1, "status": Status.CREATED, "currency": "USD",
        "amount": amount, "fee": fee, "auto_capture": False, "created_at": NOW,
        "expires_at": NOW + timedelta(hours=1), "events": 1,
    }  # fmt: skip
    return Order(**{**values, **more})


def approved(amount: int = 10_000, fee: int = 0, **more: Any) -> Order:
    """Return an order whose authorization is valid for 13 days from NOW."""
    held = {"status": Status.APPROVED, "authorization_expires_at": NOW + timedelta(days=13)}
    return created(amount, fee, **{**held, **more})


def plan(amount: int = 10_000, fee: int = 0, paid: Iterable[int] = (1,)) -> list[Installment]:
    """Return the agreed schedule with some installments paid, each by a separate charge."""
    done = set(paid)
    agreed = schedule(amount, fee, TODAY)
    return [
        replace(item, charge_id=charge_id(item.number)) if item.number in done else item for item in agreed
    ]


def asked(kind: MovementKind, amount: int, reference: str = "ref-1") -> MovementRequest:
    """Return a request of the merchant."""
    return MovementRequest(kind, reference, amount)


def after(before: Sequence[Installment], outcome: Outcome) -> list[Installment]:
    """Return the plan after an outcome is saved. The outcome contains only the installments that differ."""
    return list({item.number: item for item in (*before, *outcome.installments)}.values())


def to_cards(outcome: Outcome) -> dict[UUID, int]:
    """Return the cents that go back to each charge."""
    return {item.charge_id: item.amount for item in outcome.card_refunds}


def held(transfers: Iterable[Transfer]) -> dict[Account, int]:
    """Return every account with a balance: debits minus credits."""
    rows = list(transfers)
    return {account: cents for account in Account if (cents := balance(rows, account))}
