"""Creates an order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.checkout.start import Start
from cuota.core.merchant import Merchant, require_in_range, require_selling
from cuota.core.order.event import Event
from cuota.core.order.order import Order, Status, edge
from cuota.core.refusal import Code, Refused
from cuota.db.order import documents, orders, outcomes
from cuota.db.order.outcomes import Answer, NewOrder
from cuota.db.pool import GONE, unavailable
from cuota.flows.context import Context, new_token
from cuota.flows.lost_session import READ_AGAIN, read_after_loss

UNKNOWN = "The database connection was lost. Try again. An order may have been created, but no consumer will open it."


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """A parsed request body. Amounts are cents. `document` is the JSON that `GET` returns, `warnings` name dropped fields."""

    amount: int
    fee: int
    reference: str
    document: dict[str, object]
    warnings: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Created:
    """A new order, and the data for the response to the merchant."""

    order_id: UUID
    token: UUID
    redirect_url: str
    created_at: datetime
    expires_at: datetime
    warnings: list[dict[str, str]]


async def create_order(
    context: Context,
    merchant: Merchant,
    request: OrderRequest,
    remember: Callable[[Created], Answer] | None = None,
    start: Start | None = None,
) -> Created:
    """Create an order. Raises Refused if the amount is outside the merchant's range, or the merchant may not make new orders.

    `remember` makes the response that is stored for the request's Idempotency-Key. `start` describes a checkout that a page
    started, if one did.
    """
    require_selling(merchant, sandbox=context.settings.sandbox)
    require_in_range(merchant, request.amount)
    order = new_order(context, merchant, request, auto_capture=not merchant.defer_funds_capture)
    token = new_token()
    created = Created(
        order.order_id,
        token,
        checkout_url(context, order.merchant_id, token),
        order.created_at,
        order.expires_at,
        request.warnings,
    )
    answer = remember(created) if remember else None
    if not await write_order(context, order, token, request, start, answer):
        raise Refused(
            Code.IDEMPOTENCY_IN_PROGRESS,
            "Another request with this Idempotency-Key is in progress.",
            retry_after=1,
        )
    return created


def checkout_url(context: Context, merchant_id: UUID, token: UUID) -> str:
    """Return the address of the hosted checkout for this order."""
    return f"{context.settings.public_url}/checkout/{merchant_id}?token={token}"


def new_order(context: Context, merchant: Merchant, request: OrderRequest, *, auto_capture: bool) -> Order:
    """Return a new order in the state Created, with its deadline counted from now."""
    now = context.now()
    return Order(
        merchant_id=merchant.merchant_id,
        order_id=context.new_id(),
        version=1,
        status=Status.CREATED,
        currency=merchant.currency,
        amount=request.amount,
        fee=request.fee,
        auto_capture=auto_capture,
        created_at=now,
        expires_at=now + timedelta(minutes=context.settings.order_minutes),
    )


async def write_order(
    context: Context,
    order: Order,
    token: UUID,
    request: OrderRequest,
    start: Start | None = None,
    answer: Answer | None = None,
) -> bool:
    """Save a new order with its events. Returns False if its Idempotency-Key or its signed text already created an order."""
    events = [Event("order.created", order.amount)]
    if order.status is not Status.CREATED:
        message = "The amount is outside the merchant's range."
        rejected = edge(Status.CREATED, "reject").event
        events.append(Event(rejected, order.amount, message=message))
    document = documents.encode({**request.document, "warnings": request.warnings}).decode()
    new = NewOrder(order, token, request.reference, document, tuple(events), start)
    saved = await _save(context, new, answer)
    if saved:
        for event in events:
            context.happened(event)
    return saved


async def _save(context: Context, new: NewOrder, answer: Answer | None) -> bool:
    """Save a new order exactly once, even if the session is lost: its id shows whether the save was applied."""
    ids = new.order.merchant_id, new.order.order_id
    lost = False
    for _ in range(READ_AGAIN):
        try:
            saved = await outcomes.create(context.pool, new, answer)
            # After a loss, False may mean that the first attempt was applied after the read below.
            return saved or (lost and await orders.read_with_plan(context.pool, *ids) is not None)
        except GONE as problem:
            lost = True
            if await read_after_loss(context, *ids, problem, UNKNOWN) is not None:
                return True
        except Refused as refused:
            raise (unavailable(UNKNOWN) if lost and refused.code is Code.UNAVAILABLE else refused) from None
    raise unavailable(UNKNOWN)
