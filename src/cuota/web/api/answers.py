"""What the API answers, as JSON bytes. Amounts are decimals with two places; times ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Sequence

from cuota.core.installment import Installment
from cuota.core.merchant import Merchant
from cuota.core.money import decimal_from
from cuota.core.movement import shown_balances
from cuota.core.order import Order
from cuota.db.documents import encode
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
