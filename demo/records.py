"""The provider's answers, converted for the shop: amounts in cents, lists as tuples."""

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
    """A capture, void or refund that was applied. `amount` is in cents, and `when` an ISO 8601 time."""

    kind: str
    reference: str
    amount: int
    when: str

    @property
    def operation(self) -> str:
        """The shop's own reference. Operations of a virtual card have it with the prefix "card-"."""
        return self.reference.removeprefix("card-")

    @classmethod
    def read(cls, kind: str, answer: Mapping[str, Any]) -> Self:
        """Read a movement from the order's record, or from the answer of the call that made it."""
        return cls(
            kind=kind,
            reference=str(answer.get("merchantReference") or ""),
            amount=from_json(answer["amount"]),
            when=str(answer.get("dateTime") or answer.get("refundedDateTime") or ""),
        )


@dataclass(frozen=True)
class Payment:
    """An order at the provider, with amounts in cents. `amount` is the ordered amount, before any void."""

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
        """The cents that can still be captured or voided."""
        if self.status != "Approved" or self.state == "EXPIRED":
            return 0
        return self.amount - self.voided - self.captured

    @property
    def refundable(self) -> int:
        """The cents that were captured and not refunded yet."""
        return self.captured - self.refunded

    def possible(self, kind: str) -> int:
        """Return the largest amount in cents that a capture, void or refund can move."""
        return self.refundable if kind == "refund" else self.open


@dataclass(frozen=True)
class WebhookEvent:
    """An event that a webhook delivered. The order id is empty in a test event, and in one about a payout or the bank account. `amount` is in cents."""

    event_id: str
    order_id: str
    sequence: int
    type: str
    amount: int
    message: str
    happened: str

    @classmethod
    def read(cls, event: JsonObject) -> Self:
        """Read the event of a verified webhook."""
        return cls(
            event_id=str(event["id"]),
            order_id=str(event.get("orderId") or ""),
            sequence=int(event["sequence"] or 0),
            type=str(event["type"]),
            amount=from_json(event.get("amount")),
            message=str(event.get("message") or ""),
            happened=str(event["timestamp"]),
        )


@dataclass(frozen=True)
class NewCheckout:
    """A new order at the provider: its id, and the address where the buyer pays."""

    order_id: str
    redirect_url: str


@dataclass(frozen=True)
class AmountLimits:
    """The lowest and highest amount for which Pay in four is offered, in cents."""

    minimum: int
    maximum: int

    def allow(self, amount: int) -> bool:
        """Return whether Pay in four is offered for this amount."""
        return self.minimum <= amount <= self.maximum


def _lines_of(place: JsonObject) -> tuple[str, ...]:
    """Return the lines of a shipping address, as on a label."""
    town = " ".join(str(place[name]) for name in ("city", "state", "postalCode") if place.get(name))
    lines = [place.get("name"), place.get("line1"), place.get("line2"), town]
    return tuple(str(line) for line in lines if line)


def changes(dry_run: JsonObject) -> list[tuple[str, int, int]]:
    """Return the amounts that an operation would change, from the answer of a dry run.

    Each entry has the name of an amount of the order or the plan, and its cents before and after.
    """
    before, after = (_amounts(dry_run[when]) for when in ("before", "after"))
    return [
        (name, cents, after.get(name, 0)) for name, cents in before.items() if cents != after.get(name, 0)
    ]


def _amounts(standing: JsonObject) -> dict[str, int]:
    amounts = {label: from_json(standing["balances"].get(name)) for name, label in BALANCES.items()}
    for installment in standing["plan"]:
        amounts[f"Installment {installment['number']}"] = from_json(installment["amount"])
    return amounts
