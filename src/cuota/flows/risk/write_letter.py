"""The letter that tells a consumer why an order was declined. The worker sends it; an operator can print it again."""

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
    """Return the letter's paragraphs.

    `amount` and `limit` are in cents. `limit` is the most that the consumer may owe, or None if it was not stored.
    """
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
