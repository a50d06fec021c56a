"""`cuota verify` checks the fees of an order with very many captures and refunds in one pass."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from cuota.core.order import posting
from cuota.core.payout import fee
from cuota.core.payout.terms import RefundFee, SettlementTerms, in_force
from cuota.db.verify import fees

NOW = datetime(2026, 3, 2, tzinfo=UTC)
TERMS = (1, NOW, 500, 0, RefundFee.RETURNED.value)


def look_ups(times: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Check an order with this many captures and as many refunds. Return how often the terms in force were looked up."""
    captures = [UUID(int=number) for number in range(times)]
    refunds = [UUID(int=times + number) for number in range(times)]
    ledger = [
        *(each for cause in captures for each in (*posting.capture(cause, 100), *posting.merchant_fee(cause, 5))),
        *(each for cause in refunds
          for each in (*posting.refund(cause, 100, 0), *posting.merchant_fee_returned(cause, 5))),
    ]  # fmt: skip
    found = 0

    def counted(terms: list[SettlementTerms], at: datetime) -> SettlementTerms | None:
        nonlocal found
        found += 1
        return in_force(terms, at)

    monkeypatch.setattr(fee, "in_force", counted)
    facts = {"terms": [TERMS], "moved_at": [(cause, NOW) for cause in (*captures, *refunds)]}
    assert list(fees.disagreements(facts, ledger)) == []
    return found


def test_the_terms_are_looked_up_a_few_times_for_each_movement(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look_ups(40, monkeypatch) == 4 * look_ups(10, monkeypatch)
