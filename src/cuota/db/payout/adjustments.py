"""Writes adjustments: corrections of a merchant's money that an operator makes by hand."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.payout.posting import MerchantPosting
from cuota.db.session import Session

_POST = "SELECT post_merchant_transfer($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS posted"


async def post(
    session: Session,
    merchant_id: UUID,
    adjustment_id: UUID,
    posting: MerchantPosting,
    net: int,
    currency: str,
    reason: str,
    now: datetime,
) -> bool:
    """Post an adjustment of `net` cents with its settlement line, whose reference is the reason."""
    row = await session.fetchrow(
        _POST, merchant_id, posting.name, adjustment_id, posting.debit, posting.credit, abs(net), currency, now, posting.line,
        net, reason,
    )  # fmt: skip
    return row is not None and bool(row["posted"])
