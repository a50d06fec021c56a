"""An order as merchants see it: the response of `GET /order`, and the member `order` of every event."""

from __future__ import annotations

from cuota.core.instant import timestamp
from cuota.core.money import decimal_from
from cuota.core.order.movement import Movement, MovementKind
from cuota.core.order.order import Status
from cuota.db.order.documents import encode
from cuota.db.order.orders import OrderRecord
from cuota.flows.order.checkout_result import shipping_of


def movement(moved: Movement) -> dict[str, object]:
    """Return one capture, void or refund as JSON members, for its own response and for the lists in the order's record."""
    if moved.kind is MovementKind.REFUND:
        return {
            "id": moved.movement_id,
            "refundedDateTime": timestamp(moved.at),
            "merchantReference": moved.reference,
            "amount": decimal_from(moved.amount),
        }
    return {
        "merchantReference": moved.reference,
        "amount": decimal_from(moved.amount),
        "dateTime": timestamp(moved.at),
    }


def record(found: OrderRecord) -> bytes:
    """Return the body of `GET /order/{orderId}`: the amounts and movements, then the created document, byte for byte."""
    order = found.order
    shipping = shipping_of(found.payer) if order.status is Status.APPROVED else None
    authorization_ends = order.authorization_expires_at
    moving = encode(
        {
            "orderId": order.order_id,
            "orderStatus": order.status,
            "paymentState": order.payment_state,
            "amount": decimal_from(order.amount - order.voided),
            "originalAmount": decimal_from(order.amount),
            "currency": order.currency,
            "capturedAmount": decimal_from(order.captured),
            "voidedAmount": decimal_from(order.voided),
            "refundedAmount": decimal_from(order.refunded),
            "createdDateTime": timestamp(order.created_at),
            "expiryDateTime": timestamp(order.expires_at),
            "authorizationExpiryDateTime": timestamp(authorization_ends) if authorization_ends else None,
            "token": found.token,
            "captures": [movement(item) for item in found.movements if item.kind is MovementKind.CAPTURE],
            "voids": [movement(item) for item in found.movements if item.kind is MovementKind.VOID],
            "refunds": [movement(item) for item in found.movements if item.kind is MovementKind.REFUND],
            **({"reviewUntilDateTime": timestamp(order.review_by)} if order.review_by else {}),
            **({"shippingAddress": shipping} if shipping else {}),
        }
    )
    return moving[:-1] + b"," + found.document.encode()[1:]
