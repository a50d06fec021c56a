"""The versions of merchants' terms, and the fees of an order's captures."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from uuid import UUID

from cuota.core.payout.fee import CaptureFee, OrderFees
from cuota.core.payout.terms import RefundFee, SettlementTerms
from cuota.db.nested import Nested
from cuota.db.payout import terms_row
from cuota.db.pool import Row
from cuota.db.session import Session

# The columns that a fee needs. A merchant has few versions, usually none or one.
TERMS = Nested(
    "terms",
    ("t.version", "t.valid_from", "t.percent", "t.fixed", "t.refund_fee"),
    "FROM merchant_terms t WHERE t.merchant_id = $1 ORDER BY t.version",
)
# An order may have thousands of captures. Therefore no statement joins the captures with their fees: no index contains the causes of
# transfers, so that would read all transfers of the order for each capture. `fees_of` joins them.
CAPTURES = Nested(
    "captures",
    ("m.movement_id", "m.created_at", "m.amount"),
    """FROM movements m WHERE m.merchant_id = $1 AND m.order_id = o.order_id AND m.kind = 'capture'
        ORDER BY m.created_at""",
)
FEES = Nested(
    "fees",
    ("t.posting", "t.cause", "t.amount"),
    """FROM transfers t WHERE t.merchant_id = $1 AND t.order_id = o.order_id
        AND t.posting IN ('merchant_fee', 'merchant_fee_returned') ORDER BY t.number""",
)
_ALL = f"SELECT {terms_row.COLUMNS} FROM merchant_terms t WHERE t.merchant_id = $1 ORDER BY t.version"
_ADD = """INSERT INTO merchant_terms (merchant_id, version, valid_from, percent, fixed, refund_fee, payout, minimum, reserve,
    reserve_days, time_zone, cutoff, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"""


def versions_of(row: Row) -> tuple[SettlementTerms, ...]:
    """Return the versions from a row with the columns of TERMS. They have only the fields that a fee needs."""
    return tuple(
        SettlementTerms(version, valid_from, percent, fixed, RefundFee(refund_fee))
        for version, valid_from, percent, fixed, refund_fee in TERMS.of(row)
    )


def fees_of(row: Row) -> OrderFees:
    """Return an order's fees from a row with the columns of CAPTURES and FEES."""
    paid, returned = Counter[UUID](), 0
    for posting, cause, amount in FEES.of(row):
        if posting == "merchant_fee":
            paid[cause] += amount
        else:
            returned += amount
    captures = (CaptureFee(at, amount, paid[movement_id]) for movement_id, at, amount in CAPTURES.of(row))
    return OrderFees(tuple(captures), returned)


async def read_all(session: Session, merchant_id: UUID) -> list[SettlementTerms]:
    """Return all versions of a merchant's terms, the oldest first."""
    return [terms_row.terms_of(row) for row in await session.fetch(_ALL, merchant_id)]


async def add(session: Session, merchant_id: UUID, terms: SettlementTerms, now: datetime) -> None:
    """Store a new version. Raises UniqueViolationError if another version got the same number meanwhile."""
    await session.fetchrow(
        _ADD, merchant_id, terms.version, terms.valid_from, terms.percent, terms.fixed, terms.refund_fee, terms.payout,
        terms.minimum, terms.reserve, terms.reserve_days, terms.time_zone, terms.cutoff, now,
    )  # fmt: skip
