"""Builds the API's JSON answers, as bytes. Amounts are decimals with two places; times are ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Sequence

from cuota.core.installment import Installment
from cuota.core.instant import timestamp
from cuota.core.merchant import Merchant
from cuota.core.money import decimal_from
from cuota.core.order.movement import Movement, shown_balances
from cuota.core.order.order import Order
from cuota.db.order.documents import encode
from cuota.flows.order import show_order
from cuota.flows.order.create_order import Created
from cuota.flows.order.move_money import Preview

Warnings = list[dict[str, str]]


def configuration(merchant: Merchant) -> bytes:
    """The answer of `GET /configuration`."""
    return encode(
        {
            "minimumAmount": decimal_from(merchant.lowest),
            "maximumAmount": decimal_from(merchant.highest),
            "deferFundsCapture": merchant.defer_funds_capture,
        }
    )


def created(order: Created) -> bytes:
    """The answer of `POST /order`."""
    return encode(
        {
            "orderId": order.order_id,
            "token": order.token,
            "redirectUrl": order.redirect_url,
            "expiryDateTime": timestamp(order.expires_at),
            "warnings": order.warnings,
        }
    )


def moved(movement: Movement, warnings: Warnings) -> bytes:
    """The answer of a capture, void or refund. It has `warnings` only if a field was ignored."""
    return encode({**show_order.movement(movement), **_warned(warnings)})


def _warned(warnings: Warnings) -> dict[str, object]:
    return {"warnings": warnings} if warnings else {}


def preview(seen: Preview, warnings: Warnings) -> bytes:
    """The answer of a capture, void or refund with `?dryRun=true`."""
    return encode(
        {
            "dryRun": True,
            "operation": seen.asked.kind,
            "amount": decimal_from(seen.asked.amount),
            "before": _state(seen.before, seen.plan_before),
            "after": _state(seen.after, seen.plan_after),
            "returnedToCard": decimal_from(seen.to_card),
            **_warned(warnings),
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
