"""The service's answers, as typed objects.

Amounts are exact Decimals; times have a time zone; `raw` is the whole JSON answer. A field that an answer does not have
becomes zero, the empty string or None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Self

Raw = Mapping[str, Any]


def amount_of(value: object) -> Decimal:
    """Return an amount with exactly the value in the JSON, which must be parsed with `parse_float=Decimal`."""
    if value is None:
        return Decimal("0.00")
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError(f"not an amount: {value!r}")
    return Decimal(value)


def text_of(value: object) -> str:
    """Return a text; "" for None."""
    return "" if value is None else str(value)


def when_of(value: object) -> datetime | None:
    """Read an ISO 8601 time with a time zone; None for anything but a non-empty text."""
    return datetime.fromisoformat(value) if isinstance(value, str) and value else None


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


@dataclass(frozen=True)
class FieldError:
    """An error in one field of a request: the field's dotted path, a stable code, and a message."""

    field: str
    code: str
    message: str

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read one entry of `errors`."""
        return cls(text_of(raw.get("field")), text_of(raw.get("code")), text_of(raw.get("message")))


@dataclass(frozen=True)
class Balances:
    """The captured, voided and refunded amounts of an order, and the amounts for which these calls are still possible."""

    order_amount: Decimal
    captured: Decimal
    voided: Decimal
    refunded: Decimal
    capturable: Decimal
    voidable: Decimal
    refundable: Decimal

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `balances`."""
        names = ["orderAmount", "captured", "voided", "refunded", "capturable", "voidable", "refundable"]
        return cls(*(amount_of(raw.get(name)) for name in names))


@dataclass(frozen=True)
class Original:
    """The earlier call that used the same reference. `same_request`: it had the same amount."""

    operation: str
    id: str
    amount: Decimal
    at: datetime | None
    same_request: bool

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `original`."""
        return cls(
            text_of(raw.get("operation")),
            text_of(raw.get("id")),
            amount_of(raw.get("amount")),
            when_of(raw.get("dateTime")),
            raw.get("sameRequest") is True,
        )


@dataclass(frozen=True)
class Configuration:
    """Your terms: the order amounts that can be paid in installments.

    `defer_funds_capture`: you capture each order yourself. Otherwise an order is captured upon approval.
    """

    minimum_amount: Decimal
    maximum_amount: Decimal
    defer_funds_capture: bool
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `GET /configuration`."""
        return cls(
            amount_of(raw["minimumAmount"]),
            amount_of(raw["maximumAmount"]),
            raw.get("deferFundsCapture") is True,
            raw,
        )


@dataclass(frozen=True)
class CreatedOrder:
    """A new order. Store `order_id` with your own order, then send the consumer to `redirect_url`."""

    order_id: str
    redirect_url: str
    token: str
    expires_at: datetime | None
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `POST /order`."""
        return cls(
            str(raw["orderId"]),
            str(raw["redirectUrl"]),
            text_of(raw.get("token")),
            when_of(raw.get("expiryDateTime")),
            raw,
        )


@dataclass(frozen=True)
class Movement:
    """A capture, void or refund that was applied. `repeated`: an earlier call with the same reference applied it."""

    operation: str
    reference: str
    amount: Decimal
    at: datetime | None
    id: str
    repeated: bool
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, operation: str, raw: Raw, *, repeated: bool = False) -> Self:
        """Read the answer of the call, or an entry in the order's record."""
        at = when_of(raw.get("dateTime") or raw.get("refundedDateTime"))
        reference, amount = text_of(raw.get("merchantReference")), amount_of(raw["amount"])
        return cls(operation, reference, amount, at, text_of(raw.get("id")), repeated, raw)


@dataclass(frozen=True)
class Order:
    """The current state of an order. `status` says what you may do with the order; `amount` is the amount after voids."""

    order_id: str
    status: str
    payment_state: str
    amount: Decimal
    original_amount: Decimal
    currency: str
    captured: Decimal
    voided: Decimal
    refunded: Decimal
    merchant_reference: str
    token: str
    created_at: datetime | None
    expires_at: datetime | None
    authorization_expires_at: datetime | None
    review_until: datetime | None
    captures: tuple[Movement, ...]
    voids: tuple[Movement, ...]
    refunds: tuple[Movement, ...]
    metadata: Mapping[str, str]
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read the answer of `GET /order/{orderId}`, or the `order` of an event."""

        def movements(operation: str, name: str) -> tuple[Movement, ...]:
            return tuple(Movement.read(operation, each) for each in _list(raw.get(name)))

        return cls(
            order_id=str(raw["orderId"]),
            status=str(raw["orderStatus"]),
            payment_state=text_of(raw.get("paymentState")) or "NONE",
            amount=amount_of(raw["amount"]),
            original_amount=amount_of(raw.get("originalAmount", raw["amount"])),
            currency=text_of(raw.get("currency")),
            captured=amount_of(raw.get("capturedAmount")),
            voided=amount_of(raw.get("voidedAmount")),
            refunded=amount_of(raw.get("refundedAmount")),
            merchant_reference=text_of(raw.get("merchantReference")),
            token=text_of(raw.get("token")),
            created_at=when_of(raw.get("createdDateTime")),
            expires_at=when_of(raw.get("expiryDateTime")),
            authorization_expires_at=when_of(raw.get("authorizationExpiryDateTime")),
            review_until=when_of(raw.get("reviewUntilDateTime")),
            captures=movements("capture", "captures"),
            voids=movements("void", "voids"),
            refunds=movements("refund", "refunds"),
            metadata=raw.get("metadata") or {},
            raw=raw,
        )


@dataclass(frozen=True)
class OrderPage:
    """One page of a list of orders. `cursor` gets the next page; it is None on the last page."""

    orders: tuple[Order, ...]
    cursor: str | None

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `GET /orders`."""
        cursor = raw.get("nextCursor")
        more = raw.get("hasMore") is True and isinstance(cursor, str)
        return cls(tuple(map(Order.read, raw["data"])), cursor if more else None)


@dataclass(frozen=True)
class Installment:
    """One payment of the consumer's plan."""

    number: int
    due_on: date | None
    amount: Decimal
    fee: Decimal
    state: str
    returned_to_card: Decimal

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read one entry of `plan`."""
        due = raw.get("dueDate")
        return cls(
            int(raw["number"]),
            date.fromisoformat(due) if isinstance(due, str) else None,
            amount_of(raw["amount"]),
            amount_of(raw.get("fee")),
            text_of(raw.get("state")),
            amount_of(raw.get("returnedToCard")),
        )


@dataclass(frozen=True)
class Standing:
    """An order's money and plan at one moment."""

    balances: Balances
    plan: tuple[Installment, ...]

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `before` or `after` of a dry run."""
        return cls(Balances.read(raw["balances"]), tuple(map(Installment.read, _list(raw.get("plan")))))


@dataclass(frozen=True)
class Preview:
    """The result that a capture, void or refund would have. Nothing has changed, and the reference can still be used."""

    operation: str
    amount: Decimal
    before: Standing
    after: Standing
    returned_to_card: Decimal
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read the answer to a call with `dryRun=true`. Raises ValueError for the answer of a call that was applied."""
        if raw.get("dryRun") is not True:
            raise ValueError("not the answer of a dry run")
        before, after = Standing.read(raw["before"]), Standing.read(raw["after"])
        return cls(
            text_of(raw.get("operation")),
            amount_of(raw["amount"]),
            before,
            after,
            amount_of(raw.get("returnedToCard")),
            raw,
        )
