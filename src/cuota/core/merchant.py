"""A merchant and its terms."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from cuota.core import money
from cuota.core.refusal import Code, FieldError, Refused


class BodyProfile(StrEnum):
    """How request bodies with an order are read: strictly, or leniently about data that the shopper typed."""

    STRICT = "strict"
    LENIENT = "lenient"


@dataclass(frozen=True, slots=True)
class Merchant:
    """A merchant. Amounts are cents. `origins` are the web origins whose pages may open the checkout by script."""

    merchant_id: UUID
    name: str
    minimum: int
    maximum: int
    defer_funds_capture: bool
    profile: BodyProfile
    currency: str
    origins: tuple[str, ...]


def require_in_range(merchant: Merchant, amount: int) -> None:
    """Raise Refused if the amount (cents) is below the merchant's minimum or above the maximum."""
    if merchant.minimum <= amount <= merchant.maximum:
        return
    low, high = money.text_of(merchant.minimum), money.text_of(merchant.maximum)
    message = f"amount must be from {low} to {high} for this merchant."
    error = FieldError("amount", "out_of_range", f"must be from {low} to {high}")
    raise Refused(Code.AMOUNT_OUT_OF_RANGE, message, errors=(error,))
