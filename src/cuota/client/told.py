"""The answers of the service about events and webhook endpoints, as typed objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Self

from cuota.client.answers import Order, Raw, amount_of, text_of, when_of


@dataclass(frozen=True)
class Event:
    """An event of your account. A webhook has the same body: `Event.read(verify_webhook(...))`.

    `sequence` counts an order's events from 1; `order` is the order after this event. Act only once on each `id`.
    """

    id: str
    type: str
    at: datetime | None
    order_id: str
    merchant_reference: str
    currency: str
    amount: Decimal | None
    operation: str | None
    success: bool
    message: str | None
    test: bool
    sequence: int | None
    metadata: Mapping[str, str]
    order: Order | None
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read an entry of `GET /events`, or a webhook's body."""
        order, amount = raw.get("order"), raw.get("amount")
        return cls(
            id=str(raw["id"]),
            type=str(raw["type"]),
            at=when_of(raw.get("timestamp")),
            order_id=text_of(raw.get("orderId")),
            merchant_reference=text_of(raw.get("merchantReference")),
            currency=text_of(raw.get("currency")),
            amount=None if amount is None else amount_of(amount),
            operation=raw.get("operation"),
            success=raw.get("success") is True,
            message=raw.get("message"),
            test=raw.get("test") is True,
            sequence=raw.get("sequence"),
            metadata=raw.get("metadata") or {},
            order=Order.read(order) if isinstance(order, Mapping) else None,
            raw=raw,
        )


@dataclass(frozen=True)
class EventPage:
    """One page of the list of events."""

    events: tuple[Event, ...]
    has_more: bool

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `GET /events`."""
        return cls(tuple(map(Event.read, raw["events"])), raw.get("hasMore") is True)


@dataclass(frozen=True)
class Endpoint:
    """An address that events are sent to.

    `secret` is set only in the results of registering the endpoint and of rotating its secret; otherwise None. Store it.
    """

    id: str
    url: str
    description: str
    state: str
    created_at: datetime | None
    secret: str | None = field(repr=False)
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read one endpoint."""
        return cls(
            str(raw["id"]),
            str(raw["url"]),
            text_of(raw.get("description")),
            str(raw["state"]),
            when_of(raw.get("createdDateTime")),
            raw.get("secret"),
            raw,
        )


@dataclass(frozen=True)
class EndpointTest:
    """The answer of your address to a `webhook.test` event. `acknowledged`: it was a 2xx answer in time."""

    acknowledged: bool
    status: int | None
    milliseconds: int
    error: str | None
    answer: str

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `POST /webhook-endpoints/{endpointId}/test`."""
        return cls(
            raw["acknowledged"] is True,
            raw.get("status"),
            int(raw.get("milliseconds") or 0),
            raw.get("error"),
            text_of(raw.get("answer")),
        )
