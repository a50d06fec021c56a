"""What the service answers, typed. Amounts are exact Decimals; times have their zone; `raw` is the whole answer.

A field that an answer does not have reads as nothing: zero, the empty text, None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Self

Raw = Mapping[str, Any]


def amount_of(value: object) -> Decimal:
    """An amount as it stood in the JSON. Read answers with `parse_float=Decimal`."""
    if value is None:
        return Decimal("0.00")
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError(f"not an amount: {value!r}")
    return Decimal(value)


def text_of(value: object) -> str:
    """A text; the empty one where there is none."""
    return "" if value is None else str(value)


def when_of(value: object) -> datetime | None:
    """A time with its zone."""
    return datetime.fromisoformat(value) if isinstance(value, str) and value else None


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


@dataclass(frozen=True)
class FieldError:
    """One thing wrong with one field: its dotted path, a stable code, a text."""

    field: str
    code: str
    message: str

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read one of `errors`."""
        return cls(text_of(raw.get("field")), text_of(raw.get("code")), text_of(raw.get("message")))


@dataclass(frozen=True)
class Balances:
    """How an order's money stands."""

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
    """What a reference was used for before; `same_request` says whether for the same amount."""

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
    """Your terms: the amounts that can be paid in installments, and who captures."""

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
    """A new order. Store `order_id` beside your own order, then send the consumer to `redirect_url`."""

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
    """A capture, void or refund that was applied. `repeated`: it was applied before, by this reference's first call."""

    operation: str
    reference: str
    amount: Decimal
    at: datetime | None
    id: str
    repeated: bool
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, operation: str, raw: Raw, *, repeated: bool = False) -> Self:
        """Read the answer of the call, and as the order's record lists it."""
        at = when_of(raw.get("dateTime") or raw.get("refundedDateTime"))
        reference, amount = text_of(raw.get("merchantReference")), amount_of(raw["amount"])
        return cls(operation, reference, amount, at, text_of(raw.get("id")), repeated, raw)


@dataclass(frozen=True)
class Order:
    """An order as it stands. Go by `status`; `amount` is what is left after voids."""

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
    captures: tuple[Movement, ...]
    voids: tuple[Movement, ...]
    refunds: tuple[Movement, ...]
    metadata: Mapping[str, str]
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `GET /order/{orderId}`, and the `order` of an event."""

        def moved(operation: str, name: str) -> tuple[Movement, ...]:
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
            captures=moved("capture", "captures"),
            voids=moved("void", "voids"),
            refunds=moved("refund", "refunds"),
            metadata=raw.get("metadata") or {},
            raw=raw,
        )


@dataclass(frozen=True)
class OrderPage:
    """One page of a listing. `cursor` is the next page's; None at the end."""

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
        """Read one of `plan`."""
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
    """What a capture, void or refund would do. Nothing has changed, and the reference is not used up."""

    operation: str
    amount: Decimal
    before: Standing
    after: Standing
    returned_to_card: Decimal
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read an answer to `dryRun=true`. Anything else would be a call that really acted: an error."""
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
