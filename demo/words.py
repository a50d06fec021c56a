"""The texts that the shop shows after an error, by the provider's error code."""

from __future__ import annotations

from .money import from_json, show
from .payments import PaymentError

UNREACHABLE = "The payment provider cannot be reached; your cart is kept. Please try again in a minute."

_CHECKOUT = {
    "amount_out_of_range": "Pay in four is not offered for this amount. Please change your cart.",
    "rate_limited": "Many people are checking out right now; your cart is kept. Please try again in a minute.",
}
_MOVE = {
    "order_not_completed": "The consumer has not paid this order, so nothing can be moved yet.",
    "authorization_expired": "The authorization has expired: the uncaptured amount was voided.",
    "duplicate_reference": "This reference was used before for a different amount. Reload the page and try again.",
    "invalid_amount": "Write an amount above zero with at most two decimals.",
    "order_not_found": "The payment provider does not know this order.",
}
_LIMIT = {
    "capture_exceeds_authorized": ("capturable", "captured"),
    "void_exceeds_uncaptured": ("voidable", "voided"),
    "refund_exceeds_captured": ("refundable", "refunded"),
}


def checkout_failed(error: PaymentError) -> str:
    """Return the text for a buyer whose checkout could not be started."""
    if error.code in _CHECKOUT:
        return _CHECKOUT[error.code]
    if error.undecided:
        return UNREACHABLE
    return f"Pay in four could not be started; your cart is kept. ({error.code})"


CHANGED = "Your cart changed in another window. Please look at it once more."
EMPTY = "There is nothing in your cart any more."
CARD_LOST = "The card could not be charged just now. Nothing is lost: press the button again in a moment."
_CARD = {
    "exceeds_limit": "it is for a smaller amount",
    "expired_card": "it has expired",
    "already_used": "it was used before",
    "order_voided": "its order was canceled",
    "order_expired": "its order has ended",
    "wrong_merchant": "it is for another shop",
}


def card_refused(reason: str) -> str:
    """Return the text for a buyer whose virtual card could not be charged."""
    why = _CARD.get(reason, "its details were not accepted")
    return f"The card for this order was refused: {why}. The shop cancels the order, and you get back what you paid."


def move_failed(error: PaymentError, kind: str) -> str:
    """Return the text for the staff if a capture, void or refund was not done."""
    if error.undecided:
        return (
            f"The payment provider did not answer, so it is not known whether the {kind} was made. "
            "It is listed below, and you can safely request it again."
        )
    if error.code in _LIMIT:
        name, done = _LIMIT[error.code]
        if name not in error.balances:  # a card processor does not report balances
            return f"That is more than can be {done}."
        return (
            f"That is more than is left: at most {show(from_json(error.balances.get(name)))} can be {done}."
        )
    return _MOVE.get(error.code, refused(error))


def refused(error: PaymentError) -> str:
    """Return the text for the staff if another call was refused."""
    return f"{error.message} ({error.code})"
