"""A merchant and its terms."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from cuota.core import money
from cuota.core.refusal import Code, FieldError, Refused


class BodyProfile(StrEnum):
    """How order bodies are read: to the letter, or forgiving about what the shopper typed."""

    STRICT = "strict"
    LENIENT = "lenient"


@dataclass(frozen=True, slots=True)
class Merchant:
    """Amounts in cents. `origins` are the web origins whose pages may open the checkout by script."""

    merchant_id: UUID
    name: str
    minimum: int
    maximum: int
    defer_funds_capture: bool
    profile: BodyProfile
    currency: str
    origins: tuple[str, ...]


def require_in_range(merchant: Merchant, amount: int) -> None:
    """Order amounts lie between the merchant's minimum and maximum, both included."""
    if merchant.minimum <= amount <= merchant.maximum:
        return
    low, high = money.text_of(merchant.minimum), money.text_of(merchant.maximum)
    message = f"amount must be from {low} to {high} for this merchant."
    error = FieldError("amount", "out_of_range", f"must be from {low} to {high}")
    raise Refused(Code.AMOUNT_OUT_OF_RANGE, message, errors=(error,))
