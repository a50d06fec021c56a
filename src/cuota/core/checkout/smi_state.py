"""The states of a checkout for a shop system (SMI): the checkout's own state, and the result that the browser brings back."""

from __future__ import annotations

from enum import StrEnum

from cuota.core.order.order import Order, PaymentState, Status


class CheckoutState(StrEnum):
    """The values of a checkout's `state`. The browser's results use three of these names."""

    CREATED = "created"  # the customer has not finished
    APPROVED = "approved"  # paid, but not captured in full
    COMPLETED = "completed"  # paid, and captured in full
    EXPIRED = "expired"  # not finished in time, or not captured in time
    DECLINED = "declined"
    CANCELLED = "cancelled"  # the customer canceled, or the merchant voided everything


_OF_MONEY = {
    PaymentState.AUTHORIZED: CheckoutState.APPROVED,
    PaymentState.PARTIALLY_CAPTURED: CheckoutState.APPROVED,
    PaymentState.CAPTURED: CheckoutState.COMPLETED,
    PaymentState.VOIDED: CheckoutState.CANCELLED,
    PaymentState.EXPIRED: CheckoutState.EXPIRED,
}


def state_of(order: Order, *, left: bool) -> CheckoutState:
    """Return the checkout's state. `left` means that an Abandoned order was canceled by the customer and did not time out."""
    if order.status is Status.APPROVED:
        return _OF_MONEY[order.payment_state]
    return _unpaid(order, left=left)


def result_of(order: Order, *, left: bool) -> CheckoutState:
    """Return the result that the browser brings back: whether the checkout was paid, ignoring later voids and refunds."""
    return CheckoutState.APPROVED if order.status is Status.APPROVED else _unpaid(order, left=left)


def _unpaid(order: Order, *, left: bool) -> CheckoutState:
    if order.status is Status.CREATED:
        return CheckoutState.CREATED
    if order.status is Status.DECLINED:
        return CheckoutState.DECLINED
    return CheckoutState.CANCELLED if left else CheckoutState.EXPIRED
