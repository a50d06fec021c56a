"""The service's answers about payouts, the balance and the terms, as typed objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Self

from cuota.client.answers import Raw, amount_of, text_of, when_of


@dataclass(frozen=True)
class PayoutTotal:
    """The number and the sums of the lines of one type. Amounts that reduce the payout are negative."""

    count: int
    gross: Decimal
    fee: Decimal
    net: Decimal

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read one entry of `totals`."""
        return cls(int(raw["count"]), amount_of(raw["gross"]), amount_of(raw["fee"]), amount_of(raw["net"]))


@dataclass(frozen=True)
class Payout:
    """A payout. `totals` and the first and last line are set by `payout(id)`, and empty in a list of payouts."""

    payout_id: str
    status: str
    amount: Decimal
    currency: str
    closed_at: datetime | None
    arrival_date: date
    line_count: int
    last4: str
    first_line_id: str
    last_line_id: str
    totals: Mapping[str, PayoutTotal]
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read an entry of `GET /payouts`, or `GET /payouts/{payoutId}`."""
        return cls(
            payout_id=str(raw["payoutId"]),
            status=str(raw["status"]),
            amount=amount_of(raw["amount"]),
            currency=str(raw["currency"]),
            closed_at=when_of(raw.get("closedAt")),
            arrival_date=date.fromisoformat(raw["arrivalDate"]),
            line_count=int(raw["lineCount"]),
            last4=text_of(raw["bankAccount"].get("last4")),
            first_line_id=text_of(raw.get("firstLineId")),
            last_line_id=text_of(raw.get("lastLineId")),
            totals={name: PayoutTotal.read(each) for name, each in (raw.get("totals") or {}).items()},
            raw=raw,
        )


@dataclass(frozen=True)
class PayoutLine:
    """A line of a payout. `net` is `gross` plus `fee`; `sequence` is the position of its event in your feed."""

    line_id: str
    type: str
    order_id: str
    merchant_reference: str
    reference: str
    gross: Decimal
    fee: Decimal
    net: Decimal
    at: datetime | None
    sequence: int | None
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read an entry of `GET /payouts/{payoutId}/lines`."""
        return cls(
            line_id=str(raw["lineId"]),
            type=str(raw["type"]),
            order_id=text_of(raw.get("orderId")),
            merchant_reference=text_of(raw.get("merchantReference")),
            reference=text_of(raw.get("reference")),
            gross=amount_of(raw["gross"]),
            fee=amount_of(raw["fee"]),
            net=amount_of(raw["net"]),
            at=when_of(raw.get("at")),
            sequence=raw.get("sequence"),
            raw=raw,
        )


@dataclass(frozen=True)
class PayoutPage:
    """One page of payouts. `cursor` gets the next page; it is None on the last page."""

    payouts: tuple[Payout, ...]
    cursor: str | None

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `GET /payouts`."""
        return cls(tuple(map(Payout.read, raw["data"])), raw.get("nextCursor"))


@dataclass(frozen=True)
class PayoutLinePage:
    """One page of lines. `cursor` gets the next page; it is None on the last page."""

    lines: tuple[PayoutLine, ...]
    cursor: str | None

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `GET /payouts/{payoutId}/lines`."""
        return cls(tuple(map(PayoutLine.read, raw["data"])), raw.get("nextCursor"))


@dataclass(frozen=True)
class NextPayout:
    """The expected next payout."""

    closes_at: datetime | None
    arrival_date: date
    amount: Decimal


@dataclass(frozen=True)
class Balance:
    """Your balance: what Cuota owes you now. `next_payout` is None if nothing will be paid at the next cutoff."""

    available: Decimal
    pending: Decimal
    reserved: Decimal
    debt: Decimal
    next_payout: NextPayout | None
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read `GET /balance`."""
        following, found = raw.get("nextPayout"), None
        if following is not None:
            day = date.fromisoformat(following["arrivalDate"])
            found = NextPayout(when_of(following["closesAt"]), day, amount_of(following["amount"]))
        return cls(
            amount_of(raw["available"]),
            amount_of(raw["pending"]),
            amount_of(raw["reserved"]),
            amount_of(raw["debt"]),
            found,
            raw,
        )


@dataclass(frozen=True)
class Terms:
    """One version of your terms. `percent` 5.90 is 5.9 %. `refund_fee` is kept, pro_rata or returned."""

    version: int
    valid_from: datetime
    percent: Decimal
    fixed: Decimal
    refund_fee: str
    reserve: Decimal
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def read(cls, raw: Raw) -> Self:
        """Read an entry of `GET /terms`."""
        return cls(
            int(raw["version"]),
            datetime.fromisoformat(raw["validFrom"]),
            amount_of(raw["percent"]),
            amount_of(raw["fixed"]),
            str(raw["refundFee"]),
            amount_of(raw["reserve"]),
            raw,
        )
