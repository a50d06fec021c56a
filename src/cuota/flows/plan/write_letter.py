"""The letter that tells a consumer why an order was not approved: sent by the worker, shown again to an operator."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from cuota.config import Settings
from cuota.core.money import shown
from cuota.core.risk.adverse import letter


def write_letter(
    settings: Settings,
    *,
    name: str,
    merchant: str,
    day: date,
    amount: int,
    currency: str,
    reasons: Sequence[str],
    limit: int | None,
) -> list[str]:
    """Its paragraphs. Cents; `limit` is what the consumer may owe, None where that was not kept."""
    return letter(
        settings.creditor,
        settings.brand_name,
        name,
        merchant,
        day,
        shown(amount, currency),
        reasons,
        limit_text="" if limit is None else shown(limit, currency),
        agency=settings.creditor_agency,
    )
