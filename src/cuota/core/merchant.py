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


class Onboarding(StrEnum):
    """Whether the operator has approved a merchant."""

    NONE = "none"  # nobody asked for an approval, so the merchant may do everything
    OPEN = "open"  # not approved yet, or no longer
    APPROVED = "approved"


@dataclass(frozen=True, slots=True)
class OwnSettings:
    """What the merchant's own people set in the dashboard. A setting that they did not set is None.

    `minimum` and `maximum` (cents) narrow the operator's limits. Consumers see `display_name` in place of the merchant's name,
    `support_email` and `support_url` for questions, and the logo with the digest `logo`. Notices go to `notify_email`, too.
    """

    minimum: int | None = None
    maximum: int | None = None
    display_name: str | None = None
    support_email: str | None = None
    support_url: str | None = None
    notify_email: str | None = None
    logo: str | None = None


@dataclass(frozen=True, slots=True)
class Merchant:
    """A merchant. `minimum` and `maximum` are the operator's limits of an order, in cents.

    `origins` are the web origins whose pages may open the checkout by script. `suspended`: the operator does not let the merchant make
    new orders.
    """

    merchant_id: UUID
    name: str
    minimum: int
    maximum: int
    defer_funds_capture: bool
    profile: BodyProfile
    currency: str
    origins: tuple[str, ...]
    own: OwnSettings = OwnSettings()
    onboarding: Onboarding = Onboarding.NONE
    suspended: bool = False

    @property
    def lowest(self) -> int:
        """The smallest order amount in force, in cents. The merchant's own limit counts while it is within the operator's limits."""
        return self._within(self.own.minimum, self.minimum)

    @property
    def highest(self) -> int:
        """The largest order amount in force, in cents."""
        return self._within(self.own.maximum, self.maximum)

    def _within(self, own: int | None, otherwise: int) -> int:
        return own if own is not None and self.minimum <= own <= self.maximum else otherwise

    @property
    def shown_name(self) -> str:
        """The name that consumers see."""
        return self.own.display_name or self.name


def require_in_range(merchant: Merchant, amount: int, field: str = "amount") -> None:
    """Raise Refused if the amount (cents) is below the merchant's smallest or above the largest order amount.

    `field` is the amount's name in the request.
    """
    if merchant.lowest <= amount <= merchant.highest:
        return
    low, high = money.text_of(merchant.lowest), money.text_of(merchant.highest)
    message = f"{field} must be from {low} to {high} for this merchant."
    error = FieldError(field, "out_of_range", f"must be from {low} to {high}")
    raise Refused(Code.AMOUNT_OUT_OF_RANGE, message, errors=(error,))


def may_sell(merchant: Merchant, *, sandbox: bool) -> bool:
    """Return whether the merchant may make new orders."""
    return not merchant.suspended and (sandbox or merchant.onboarding is not Onboarding.OPEN)


def require_selling(merchant: Merchant, *, sandbox: bool) -> None:
    """Raise Refused if the merchant may not make new orders: it is suspended or, in production, not approved."""
    if may_sell(merchant, sandbox=sandbox):
        return
    if merchant.suspended:
        message = "Your payment provider has suspended new orders. Captures, voids and refunds still work. Ask your provider."
        raise Refused(Code.MERCHANT_SUSPENDED, message)
    message = (
        "Your account is not approved yet, so it cannot take real orders. The dashboard says under Business what is missing. The"
        " sandbox takes orders."
    )
    raise Refused(Code.MERCHANT_NOT_APPROVED, message)
