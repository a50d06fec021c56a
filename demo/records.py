"""The provider's answers as the shop uses them: amounts in cents, lists as tuples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from .money import from_json

JsonObject = dict[str, Any]

BALANCES = {
    "orderAmount": "Order amount",
    "captured": "Captured",
    "voided": "Voided",
    "refunded": "Refunded",
    "capturable": "Can be captured",
    "voidable": "Can be voided",
    "refundable": "Can be refunded",
}


@dataclass(frozen=True)
class ShopMovement:
    """A capture, a void or a refund that was applied."""

    kind: str
    reference: str
    amount: int
    when: str

    @property
    def operation(self) -> str:
        """The shop's own reference of it; what a card does carries it with a prefix."""
        return self.reference.removeprefix("card-")

    @classmethod
    def read(cls, kind: str, answer: Mapping[str, Any]) -> Self:
        """Read one as the record lists it, and as the call for it answers."""
        return cls(
            kind=kind,
            reference=str(answer.get("merchantReference") or ""),
            amount=from_json(answer["amount"]),
            when=str(answer.get("dateTime") or answer.get("refundedDateTime") or ""),
        )


@dataclass(frozen=True)
class Payment:
    """One order at the provider. `amount` is what was ordered, before any void."""

    order_id: str
    status: str
    state: str
    amount: int
    captured: int
    voided: int
    refunded: int
    movements: tuple[ShopMovement, ...]
    reference: str = ""
    ship_to: tuple[str, ...] = ()

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Self:
        """Read the order record."""
        movements = [
            ShopMovement.read(kind, each)
            for kind, name in (("capture", "captures"), ("void", "voids"), ("refund", "refunds"))
            for each in answer.get(name) or []
        ]
        return cls(
            order_id=str(answer["orderId"]),
            status=str(answer["orderStatus"]),
            state=str(answer.get("paymentState") or "NONE"),
            amount=from_json(answer.get("originalAmount", answer["amount"])),
            captured=from_json(answer.get("capturedAmount")),
            voided=from_json(answer.get("voidedAmount")),
            refunded=from_json(answer.get("refundedAmount")),
            movements=tuple(sorted(movements, key=lambda movement: movement.when)),
            reference=str(answer.get("merchantReference") or ""),
            ship_to=_lines_of(answer.get("shippingAddress") or {}),
        )

    @property
    def open(self) -> int:
        """Cents that can still be captured or voided."""
        if self.status != "Approved" or self.state == "EXPIRED":
            return 0
        return self.amount - self.voided - self.captured

    @property
    def refundable(self) -> int:
        """Cents that were captured and not yet given back."""
        return self.captured - self.refunded

    def possible(self, kind: str) -> int:
        """Cents that an operation may move at most."""
        return self.refundable if kind == "refund" else self.open


@dataclass(frozen=True)
class WebhookEvent:
    """An event that a webhook brought. A test tells of no order: its order id is empty."""

    event_id: str
    order_id: str
    sequence: int
    type: str
    amount: int
    message: str
    happened: str

    @classmethod
    def read(cls, event: JsonObject) -> Self:
        """Read a webhook's body, once it is verified."""
        return cls(
            event_id=str(event["id"]),
            order_id=str(event["orderId"] or ""),
            sequence=int(event["sequence"] or 0),
            type=str(event["type"]),
            amount=from_json(event["amount"]),
            message=str(event["message"] or ""),
            happened=str(event["timestamp"]),
        )


@dataclass(frozen=True)
class NewCheckout:
    """A new order: where its consumer pays."""

    order_id: str
    redirect_url: str


@dataclass(frozen=True)
class AmountLimits:
    """The amounts, in cents, between which pay in four is offered."""

    minimum: int
    maximum: int

    def allow(self, amount: int) -> bool:
        """Whether an order of this amount can be paid in four."""
        return self.minimum <= amount <= self.maximum


def _lines_of(place: JsonObject) -> tuple[str, ...]:
    """An address as it stands on a parcel."""
    town = " ".join(str(place[name]) for name in ("city", "state", "postalCode") if place.get(name))
    lines = [place.get("name"), place.get("line1"), place.get("line2"), town]
    return tuple(str(line) for line in lines if line)


def changes(dry_run: JsonObject) -> list[tuple[str, int, int]]:
    """What a dry run says would change, in the order's amounts and in the plan: name, cents before and after."""
    before, after = (_amounts(dry_run[when]) for when in ("before", "after"))
    return [
        (name, cents, after.get(name, 0)) for name, cents in before.items() if cents != after.get(name, 0)
    ]


def _amounts(standing: JsonObject) -> dict[str, int]:
    amounts = {label: from_json(standing["balances"].get(name)) for name, label in BALANCES.items()}
    for installment in standing["plan"]:
        amounts[f"Installment {installment['number']}"] = from_json(installment["amount"])
    return amounts
