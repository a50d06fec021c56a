"""Create an order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.event import Event
from cuota.core.merchant import Merchant, require_in_range
from cuota.core.order import Order, Status
from cuota.core.refusal import Code, Refused
from cuota.db import documents, outcomes
from cuota.db.outcomes import Answer, NewOrder
from cuota.db.pool import GONE, unavailable
from cuota.flows.context import Context, new_token


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """A readable order body. Cents; `document` holds what `GET` echoes, with `warnings` for what was dropped."""

    amount: int
    fee: int
    reference: str
    document: dict[str, object]
    warnings: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Created:
    """What the merchant is answered."""

    order_id: UUID
    token: UUID
    redirect_url: str
    expires_at: datetime
    warnings: list[dict[str, str]]


async def create_order(
    context: Context,
    merchant: Merchant,
    request: OrderRequest,
    remember: Callable[[Created], Answer] | None = None,
) -> Created:
    """Create; raises Refused where the amount is outside the merchant's range."""
    require_in_range(merchant, request.amount)
    now = context.now()
    order = Order(
        merchant_id=merchant.merchant_id,
        order_id=context.new_id(),
        version=1,
        status=Status.CREATED,
        currency=merchant.currency,
        amount=request.amount,
        fee=request.fee,
        auto_capture=not merchant.defer_funds_capture,
        created_at=now,
        expires_at=now + timedelta(minutes=context.settings.order_minutes),
    )
    token = new_token()
    address = f"{context.settings.public_url}/checkout/{merchant.merchant_id}?token={token}"
    created = Created(order.order_id, token, address, order.expires_at, request.warnings)
    document = {**request.document, "warnings": request.warnings}
    event = Event("order.created", order.amount)
    new = NewOrder(order, token, request.reference, documents.encode(document).decode(), event)
    try:
        saved = await outcomes.create(context.pool, new, remember(created) if remember else None)
    except GONE:
        raise unavailable("The database went away; at worst an order stands that nobody will open.") from None
    if not saved:
        raise Refused(
            Code.IDEMPOTENCY_IN_PROGRESS, "Another request with this Idempotency-Key runs.", retry_after=1
        )
    context.happened(event)
    return created
