"""Parts of statements that read the version of a merchant's terms that is in force at a time."""

from __future__ import annotations

from typing import Any

from cuota.core.payout.cutoff import NO_TERMS
from cuota.core.payout.terms import PayoutSchedule, RefundFee, SettlementTerms

_COLUMNS = (
    "version", "valid_from", "percent", "fixed", "refund_fee", "payout", "minimum", "reserve", "reserve_days", "time_zone",
    "cutoff",
)  # fmt: skip
COLUMNS = ", ".join(f"t.{name} AS terms_{name}" for name in _COLUMNS)
# $1 is the merchant; the time is filled in.
AT = """SELECT m.* FROM merchant_terms m WHERE m.merchant_id = $1 AND m.valid_from <= {}
    ORDER BY m.valid_from DESC, m.version DESC LIMIT 1"""


def terms_of(row: Any) -> SettlementTerms:
    """Return the one version in a row that has COLUMNS. A merchant without terms has NO_TERMS."""
    found = {name: row[f"terms_{name}"] for name in _COLUMNS}
    if found["version"] is None:
        return NO_TERMS
    found["refund_fee"] = RefundFee(found["refund_fee"])
    found["payout"] = PayoutSchedule(found["payout"])
    return SettlementTerms(**found)
