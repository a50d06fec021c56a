"""The service's answers about disputes and return notices, as typed objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Self

from cuota.client.answers import Raw, amount_of, text_of, when_of


@dataclass(frozen=True)
class StatementFile:
    """A file of a statement. `size` is in bytes."""

    file_id: str
    name: str
    media_type: str
    size: int

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read one entry of `files`."""
        return cls(str(raw["fileId"]), str(raw["name"]), str(raw["mediaType"]), int(raw["size"]))


@dataclass(frozen=True)
class Statement:
    """The text and the files that one party sent.

    `party` is consumer, merchant or operator. `text` is None after an erasure.
    """

    party: str
    text: str | None
    at: datetime | None
    files: tuple[StatementFile, ...]

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read one entry of `statements`."""
        files = tuple(map(StatementFile.read, raw["files"]))
        return cls(str(raw["party"]), raw.get("text"), when_of(raw.get("at")), files)


@dataclass(frozen=True)
class Dispute:
    """A dispute or a chargeback (`kind`). The fields from `merchant_reference` to `statements` are empty in a list of disputes.

    `status` is open, under_review, won, lost, appealed or closed, from your side. `withheld` is the amount withheld from your
    payouts now. `refund_reference` is the reference of the refund that a lost dispute made. `payment` is the number of the payment
    that a chargeback took back, and None for a dispute by your customer.
    """

    dispute_id: str
    order_id: str
    kind: str
    reason: str
    amount: Decimal
    status: str
    respond_by: datetime | None
    merchant_reference: str
    currency: str
    opened_at: datetime | None
    withheld: Decimal
    submitted_at: datetime | None
    decided_at: datetime | None
    appeal_by: datetime | None
    appealed_by: str | None
    closed_at: datetime | None
    outcome: str | None
    final: bool
    refund_reference: str | None
    statements: tuple[Statement, ...]
    payment: int | None
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read an entry of `GET /disputes`, or `GET /disputes/{disputeId}`."""
        return cls(
            dispute_id=str(raw["disputeId"]),
            order_id=str(raw["orderId"]),
            kind=str(raw["kind"]),
            reason=str(raw["reason"]),
            amount=amount_of(raw["amount"]),
            status=str(raw["status"]),
            respond_by=when_of(raw.get("respondBy")),
            merchant_reference=text_of(raw.get("merchantReference")),
            currency=text_of(raw.get("currency")),
            opened_at=when_of(raw.get("openedAt")),
            withheld=amount_of(raw.get("withheld")),
            submitted_at=when_of(raw.get("submittedAt")),
            decided_at=when_of(raw.get("decidedAt")),
            appeal_by=when_of(raw.get("appealBy")),
            appealed_by=raw.get("appealedBy"),
            closed_at=when_of(raw.get("closedAt")),
            outcome=raw.get("outcome"),
            final=raw.get("final") is True,
            refund_reference=raw.get("refundReference"),
            statements=tuple(map(Statement.read, raw.get("statements") or ())),
            payment=raw.get("payment"),
            raw=raw,
        )


@dataclass(frozen=True)
class DisputePage:
    """One page of disputes. `cursor` gets the next page; it is None on the last page."""

    disputes: tuple[Dispute, ...]
    cursor: str | None

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `GET /disputes`."""
        return cls(tuple(map(Dispute.read, raw["data"])), raw.get("nextCursor"))


@dataclass(frozen=True)
class EventDispute:
    """The dispute that an event is about, right after the event. `outcome` is set by `dispute.closed` only.

    `payment` is the number of the payment that a chargeback took back, or None. `released` is set by `dispute.opened` of a
    chargeback only: the amount of your customer's own dispute that the chargeback replaces.
    """

    dispute_id: str
    kind: str
    reason: str
    amount: Decimal
    status: str
    respond_by: datetime | None
    outcome: str | None
    payment: int | None
    released: Decimal | None

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read the `dispute` of an event."""
        return cls(
            str(raw["disputeId"]),
            str(raw["kind"]),
            str(raw["reason"]),
            amount_of(raw["amount"]),
            str(raw["status"]),
            when_of(raw.get("respondBy")),
            raw.get("outcome"),
            raw.get("payment"),
            amount_of(raw["released"]) if "released" in raw else None,
        )


@dataclass(frozen=True)
class EventReturn:
    """The return notice that `return.noticed` is about. The next installment waits until `hold_until`, or for your refund."""

    return_id: str
    carrier: str
    tracking_number: str
    noticed_at: datetime | None
    hold_until: datetime | None

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read the `return` of an event."""
        return cls(
            str(raw["returnId"]),
            str(raw["carrier"]),
            str(raw["trackingNumber"]),
            when_of(raw.get("noticedAt")),
            when_of(raw.get("holdUntil")),
        )
