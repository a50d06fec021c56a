"""The service's answers about events and webhook endpoints, as typed objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Self

from cuota.client.answers import Order, Raw, amount_of, text_of, when_of
from cuota.client.disputed import EventDispute, EventReturn


@dataclass(frozen=True)
class EventPayout:
    """The payout that an event is about, right after the event. `account_last4` are the last four digits of its account."""

    payout_id: str
    number: int
    status: str
    amount: Decimal
    currency: str
    closed_at: datetime | None
    arrival_date: date
    line_count: int
    account_last4: str
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read the `payout` of an event."""
        return cls(
            str(raw["payoutId"]),
            int(raw["number"]),
            str(raw["status"]),
            amount_of(raw["amount"]),
            text_of(raw.get("currency")),
            when_of(raw.get("closedAt")),
            date.fromisoformat(str(raw["arrivalDate"])),
            int(raw["lineCount"]),
            str(raw["bankAccount"]["last4"]),
            raw,
        )


@dataclass(frozen=True)
class EventBankAccount:
    """The bank account that `bank_account.changed` is about. If it is `canceled`, it never takes effect."""

    account_id: str
    last4: str
    effective_at: datetime | None
    canceled: bool

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read the `bankAccount` of an event."""
        return cls(
            str(raw["accountId"]),
            str(raw["last4"]),
            when_of(raw.get("effectiveAt")),
            raw.get("canceled") is True,
        )


@dataclass(frozen=True)
class Event:
    """An event of your account. A webhook has the same body: `Event.read(verify_webhook(...))`.

    `sequence` counts an order's events from 1; `order` is the order after this event. Act only once on each `id`.
    An event about a payout has `payout`, one about your bank account has `bank_account`; neither has an order. For a
    payout, `amount` is the payout's amount, and `message` is the reason of its return. An event about a dispute has `dispute`, and
    `return.noticed` has `returned`. `dispute_id` is set if a lost dispute made the refund that the event is about.
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
    payout: EventPayout | None
    bank_account: EventBankAccount | None
    dispute: EventDispute | None
    returned: EventReturn | None
    dispute_id: str | None
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read an entry of `GET /events`, or a webhook's body."""
        order, payout, account = raw.get("order"), raw.get("payout"), raw.get("bankAccount")
        dispute, returned = raw.get("dispute"), raw.get("return")
        about = payout if isinstance(payout, Mapping) else raw
        amount = about.get("amount")
        return cls(
            id=str(raw["id"]),
            type=str(raw["type"]),
            at=when_of(raw.get("timestamp")),
            order_id=text_of(raw.get("orderId")),
            merchant_reference=text_of(raw.get("merchantReference")),
            currency=text_of(about.get("currency")),
            amount=None if amount is None else amount_of(amount),
            operation=raw.get("operation"),
            success=raw.get("success", raw.get("type") != "payout.returned") is True,
            message=raw.get("message", raw.get("reason")),
            test=raw.get("test") is True,
            sequence=raw.get("sequence"),
            metadata=raw.get("metadata") or {},
            order=Order.read(order) if isinstance(order, Mapping) else None,
            payout=EventPayout.read(payout) if isinstance(payout, Mapping) else None,
            bank_account=EventBankAccount.read(account) if isinstance(account, Mapping) else None,
            dispute=EventDispute.read(dispute) if isinstance(dispute, Mapping) else None,
            returned=EventReturn.read(returned) if isinstance(returned, Mapping) else None,
            dispute_id=raw.get("disputeId"),
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
    """Your server's answer to a `webhook.test` event. `acknowledged`: it was a 2xx answer in time."""

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
