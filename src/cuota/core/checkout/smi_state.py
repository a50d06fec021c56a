"""How a shop system (SMI) sees a checkout: one word for how it stands, one for how the browser came back."""

from __future__ import annotations

from enum import StrEnum

from cuota.core.order.order import Order, PaymentState, Status


class CheckoutState(StrEnum):
    """`state` of a checkout. The last three of a browser's results have the same names."""

    CREATED = "created"  # the customer is not done
    APPROVED = "approved"  # paid; not all of it is captured
    COMPLETED = "completed"  # paid, and captured in full
    EXPIRED = "expired"  # nobody finished in time, or nothing was captured in time
    DECLINED = "declined"
    CANCELLED = "cancelled"  # the customer left, or the merchant gave all of it up


_OF_MONEY = {
    PaymentState.AUTHORIZED: CheckoutState.APPROVED,
    PaymentState.PARTIALLY_CAPTURED: CheckoutState.APPROVED,
    PaymentState.CAPTURED: CheckoutState.COMPLETED,
    PaymentState.VOIDED: CheckoutState.CANCELLED,
    PaymentState.EXPIRED: CheckoutState.EXPIRED,
}


def state_of(order: Order, *, left: bool) -> CheckoutState:
    """The state; `left`: an Abandoned order ended before its time was over, so it was the customer who ended it."""
    if order.status is Status.APPROVED:
        return _OF_MONEY[order.payment_state]
    return _unpaid(order, left=left)


def result_of(order: Order, *, left: bool) -> CheckoutState:
    """What the browser brings back: whether it was paid, whatever became of the money since."""
    return CheckoutState.APPROVED if order.status is Status.APPROVED else _unpaid(order, left=left)


def _unpaid(order: Order, *, left: bool) -> CheckoutState:
    if order.status is Status.CREATED:
        return CheckoutState.CREATED
    if order.status is Status.DECLINED:
        return CheckoutState.DECLINED
    return CheckoutState.CANCELLED if left else CheckoutState.EXPIRED
