"""What the API answers, as JSON bytes. Amounts are decimals with two places; times ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Sequence

from cuota.core.installment import Installment
from cuota.core.merchant import Merchant
from cuota.core.money import decimal_from
from cuota.core.movement import Kind, Movement, shown_balances
from cuota.core.order import Order
from cuota.db.documents import encode
from cuota.db.orders import Record
from cuota.flows.create_order import Created
from cuota.flows.move_money import Preview, timestamp


def configuration(merchant: Merchant) -> bytes:
    """`GET /configuration`."""
    return encode(
        {
            "minimumAmount": decimal_from(merchant.minimum),
            "maximumAmount": decimal_from(merchant.maximum),
            "deferFundsCapture": merchant.defer_funds_capture,
        }
    )


def created(order: Created) -> bytes:
    """`POST /order`."""
    return encode(
        {
            "orderId": order.order_id,
            "token": order.token,
            "redirectUrl": order.redirect_url,
            "expiryDateTime": timestamp(order.expires_at),
            "warnings": order.warnings,
        }
    )


def movement(moved: Movement) -> dict[str, object]:
    """One capture, void or refund, as its own answer and in the record's lists."""
    if moved.kind is Kind.REFUND:
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


def record(found: Record) -> bytes:
    """`GET /order/{orderId}`: what money moves, then the document as it was created, byte for byte."""
    order = found.order
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
            "captures": [movement(item) for item in found.movements if item.kind is Kind.CAPTURE],
            "voids": [movement(item) for item in found.movements if item.kind is Kind.VOID],
            "refunds": [movement(item) for item in found.movements if item.kind is Kind.REFUND],
        }
    )
    return moving[:-1] + b"," + found.document.encode()[1:]


def preview(seen: Preview) -> bytes:
    """`?dryRun=true`."""
    return encode(
        {
            "dryRun": True,
            "operation": seen.asked.kind,
            "amount": decimal_from(seen.asked.amount),
            "before": _state(seen.before, seen.plan_before),
            "after": _state(seen.after, seen.plan_after),
            "returnedToCard": decimal_from(seen.to_card),
        }
    )


def _state(order: Order, plan: Sequence[Installment]) -> dict[str, object]:
    installments = [
        {
            "number": item.number,
            "dueDate": item.due_on.isoformat(),
            "amount": decimal_from(item.amount),
            "fee": decimal_from(item.fee),
            "state": item.state,
            "returnedToCard": decimal_from(item.returned),
        }
        for item in plan
    ]
    return {"balances": shown_balances(order), "plan": installments}
