"""Computes a merchant's fees for an order's captures again, from the terms and the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from cuota.core.ledger import Transfer
from cuota.core.payout.fee import CaptureFee, FeeSums, capture_fee, returnable_fee
from cuota.core.payout.terms import RefundFee, SettlementTerms

# A capture that began before a new version became valid may have been saved a moment afterwards.
SLACK = timedelta(seconds=10)


def posted(ledger: Sequence[Transfer], posting: str) -> int:
    """Return the sum in cents of all rows of a posting."""
    return sum(transfer.amount for transfer in ledger if transfer.posting == posting)


def disagreements(facts: dict[str, Any], ledger: Sequence[Transfer]) -> Iterator[tuple[str, str]]:
    """Yield every fee that differs, as (row, problem). The ledger's order is the order in which everything happened."""
    terms = [
        SettlementTerms(version, valid_from, percent, fixed, RefundFee(refund_fee))
        for version, valid_from, percent, fixed, refund_fee in facts["terms"]
    ]
    moved_at: dict[UUID, datetime] = dict(facts["moved_at"])
    by_cause: dict[UUID, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for transfer in ledger:
        by_cause[transfer.cause][transfer.posting] += transfer.amount
    # An order may have thousands of captures and refunds, so no refund adds up all captures before it.
    sums, refunded = FeeSums(), 0
    for cause, found in by_cause.items():
        fee, returned = found["merchant_fee"], found["merchant_fee_returned"]
        at = moved_at.get(cause)
        if found["capture"] and at is not None:
            yield from _capture(cause, found["capture"], fee, at, terms)
            captured = found["capture"]
            more = returnable_fee(terms, CaptureFee(at, captured, fee))
            sums = FeeSums(sums.captured + captured, sums.returnable + more, sums.returned)
        elif (given_back := found["refund"] + found["dispute_lost"]) and at is not None:
            refunded += given_back
            expected = sums.to_return(refunded)
            if returned != expected:
                yield f"transfers merchant_fee_returned {cause}", f"is {returned}, the terms say {expected}"
            sums = FeeSums(sums.captured, sums.returnable, sums.returned + returned)
        elif fee or returned:
            yield f"transfers {cause}", "posts a merchant's fee without a capture or refund"


def _capture(
    cause: UUID, amount: int, fee: int, at: datetime, terms: Sequence[SettlementTerms]
) -> Iterator[tuple[str, str]]:
    expected = capture_fee(terms, amount, at)
    # Several versions may have become valid in this time.
    recent = {each.fee(amount) for each in terms if at - SLACK < each.valid_from <= at}
    if fee not in {expected, capture_fee(terms, amount, at - SLACK), *recent}:
        yield f"transfers merchant_fee {cause}", f"is {fee}, the terms say {expected}"
