"""The pages of the shop's staff: the orders, and capture, void and refund.

If the shop listens on an address other than loopback, these pages need a login.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from . import words
from .checkout import as_told, refresh
from .disputes import STATES, disputes_of
from .money import from_form, show
from .payments import PaymentError
from .records import changes
from .staff import for_staff
from .store import ShopOperation, ShopOrder
from .web import Shop, form, go, page, shop_of

DONE = {"capture": "captured", "void": "voided", "refund": "refunded"}


async def list_orders(request: Request) -> Response:
    """List the latest orders, after reading the current state of those that are not decided yet."""
    shop = shop_of(request)
    waiting = [order for order in shop.store.orders() if order.status == "Created"][:10]
    answers = await asyncio.gather(*(refresh(shop, order) for order in waiting), return_exceptions=True)
    stale = any(isinstance(answer, PaymentError) for answer in answers)
    return page(request, "orders.html", orders=shop.store.orders(), stale=stale)


async def show_order(request: Request) -> Response:
    """Show one order, from its webhooks if possible. With `?ask=1`, always read it from the provider."""
    return await _order_page(request, _order(request))


async def move(request: Request) -> Response:
    """Capture, void or refund: store the reference, call the provider, and store the result."""
    fields = await form(request)
    shop, order, kind = shop_of(request), _order(request), request.path_params["kind"]
    here = f"/orders/{order.number}"
    if order.provider_order_id is None or kind not in DONE:
        raise HTTPException(404)
    try:
        reference, amount = str(uuid.UUID(fields.get("reference", ""))), from_form(fields.get("amount", ""))
    except ValueError:
        return go(request, here, "bad", "Write the amount as dollars and cents, like 12.50.")
    if fields.get("preview") and shop.store.signed.card(order.number) is None:
        return await _preview(request, order, ShopOperation(reference, order.number, kind, amount))
    operation = shop.store.write_down(ShopOperation(reference, order.number, kind, amount))
    if (operation.number, operation.kind) != (order.number, kind):
        raise HTTPException(400)
    try:
        text = await carry_out(shop, order.provider_order_id, operation)
    except PaymentError as error:
        return go(request, here, "bad", words.move_failed(error, kind))
    return go(request, here, "good", text)


async def carry_out(shop: Shop, order_id: str, operation: ShopOperation) -> str:
    """Carry out an operation, unless its reference was applied before. Returns a text about the result.

    Raises PaymentError if the provider or the card processor refuses or does not answer.
    """
    what = f"{show(operation.amount)} {DONE[operation.kind]}"
    if operation.state == "done":
        return f"{what}. This was done before, and was not done again."
    card = shop.store.signed.card(operation.number)
    calls = {"capture": shop.payments.capture, "void": shop.payments.void, "refund": shop.payments.refund}
    try:
        if card is None:
            await calls[operation.kind](order_id, operation.amount, operation.reference)
        else:  # paid with a virtual card: the card processor moves the money
            await shop.processor.move(card.authorization_id, operation)
    except PaymentError as error:
        if (
            not error.undecided
        ):  # a refused reference may be used again; a reference without an answer must be kept
            shop.store.finish(operation.reference, "refused")
        raise
    shop.store.finish(operation.reference, "done")
    return f"{what}."


async def _preview(request: Request, order: ShopOrder, operation: ShopOperation) -> Response:
    """Show what an operation would change. The form keeps its values."""
    payments = shop_of(request).payments
    try:
        answer = await payments.preview(
            operation.kind, order.provider_order_id or "", operation.amount, operation.reference
        )
    except PaymentError as error:
        text = words.UNREACHABLE if error.undecided else words.move_failed(error, operation.kind)
        return go(request, f"/orders/{order.number}", "bad", text)
    return await _order_page(request, order, preview=operation, changes=changes(answer))


async def _order_page(request: Request, order: ShopOrder, **preview: Any) -> Response:
    shop = shop_of(request)
    from_webhook = None if request.query_params.get("ask") else as_told(shop, order)
    try:
        payment, unreachable = from_webhook or await refresh(shop, order), False
    except PaymentError:
        payment, unreachable = None, True
    told = shop.store.told(order.provider_order_id or "-")
    context = {
        "order": shop.store.order(order.number),
        "way": shop.store.signed.way(order.number),
        "card": shop.store.signed.card(order.number),
        "payment": payment,
        "unreachable": unreachable,
        "by_webhook": from_webhook is not None,
        "told": told,
        "disputes": await disputes_of(shop, order.provider_order_id or "-", told),
        "dispute_states": STATES,
        "pending": shop.store.pending(order.number),
        "references": {kind: str(uuid.uuid4()) for kind in DONE},
        "done": DONE,
        "preview": None,
        "changes": [],
    }
    return page(request, "order.html", status=503 if unreachable else 200, **(context | preview))


def _order(request: Request) -> ShopOrder:
    order = shop_of(request).store.order(request.path_params["number"])
    if order is None:
        raise HTTPException(404)
    return order


routes = [
    Route("/orders", for_staff(list_orders)),
    Route("/orders/{number:int}", for_staff(show_order)),
    Route("/orders/{number:int}/{kind}", for_staff(move), methods=["POST"]),
]
