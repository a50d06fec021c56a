"""The calls of the page's script, for a checkout in a popup or modal: sign the cart, and charge a virtual card."""

from __future__ import annotations

import contextlib
import re
import uuid
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from cuota.client import cents, sign

from . import words
from .backoffice import carry_out
from .checkout import claimed, refresh
from .payments import PaymentError
from .processor import EnteredCard
from .settings import ShopSettings, WebhookKeys
from .signed import CardPayment, Wish
from .store import FINAL, ShopOperation, ShopOrder
from .web import Shop, form, shop_of, visitor

# After a close with one of these reasons, the provider has ended the order, even if the shop has no webhook yet.
ENDED = {"declined", "session_expired", "closed_by_merchant"}


async def sign_cart(request: Request) -> Response:
    """Store the visitor's cart as an order, and answer with its signed text. The same cart gets the same order.

    The form field `closed` says how the window of the order `number` ended. After an order has ended, a new one is made.
    """
    fields = await form(request)
    shop, session, keys = shop_of(request), visitor(request).session, _keys(request)
    if fields.get("closed"):
        order = await _refresh_closed(shop, _own_order(request, fields.get("number", "")), fields["closed"])
        if order.status == "Approved" and not shop.store.signed.card_is_due(order.number):
            return _answer({"next": _outcome_of(order)})
    cart, wish = shop.store.cart(session), Wish.read(fields)
    if not cart.lines:
        return _problem(words.EMPTY)
    if fields.get("amount") != str(cart.amount):
        return _problem(words.CHANGED)

    def write(order: ShopOrder) -> str:
        return sign(signed_body(shop.settings, order, wish), keys.signing)[0]

    order, text = shop.store.sign(session, wish, cart, write)
    body, signature = sign(text, keys.signing)
    return _answer({"number": order.number, "body": body, "signature": signature})


def signed_body(settings: ShopSettings, order: ShopOrder, wish: Wish) -> dict[str, Any]:
    """Make the body of `openCheckout` from the shop's own record. It never contains values from the browser."""
    back = {
        name: f"{settings.public_url}/{path}?order={order.number}"
        for name, path in (("redirectConfirmUrl", "confirm"), ("redirectCancelUrl", "cancel"))
    }
    kind = {"express": {"checkoutFlow": "express"}, "card": {"integrationType": "virtual_card"}}
    lines = [
        {"name": line.name, "sku": line.sku, "quantity": line.quantity, "price": cents(line.price)}
        for line in order.lines
    ]
    return {
        "merchantId": settings.merchant_id,
        "merchantReference": order.name,
        "description": f"Alder & Oak order {order.name}",
        "order": {
            "amount": cents(order.amount),
            "shippingAmount": cents(order.shipping),
            "currency": "USD",
            "lineItems": lines,
        },
        "capture": False,  # the shop captures when it ships
        "callbackUrl": settings.webhook_url,
        "display": wish.display,
        **back,
        **kind.get(wish.way, {}),
    }


async def take_card(request: Request) -> Response:
    """Charge the virtual card that the page received. A repeated call for the same order charges only once."""
    fields = await form(request)
    shop, order = shop_of(request), _own_order(request, fields.get("number", ""))
    if shop.store.signed.way(order.number) != "card":
        raise HTTPException(404)
    card = EnteredCard(
        *(fields.get(name, "") for name in ("card", "cvc", "expirationMonth", "expirationYear"))
    )
    try:
        if shop.store.signed.card_is_due(order.number):
            # Charge only an order that the provider reports as Approved. The page's message alone is not proof.
            await refresh(shop, await claimed(shop, order, fields.get("orderId", "")))
            order = _there(shop, order.number)
            if order.status != "Approved":
                return _problem(words.CARD_LOST, again=True)
            result = await shop.processor.authorize(card, order.amount, order.checkout_key)
            if result.authorization_id is None:
                await _cancel(shop, order)
                return _problem(words.card_refused(result.reason))
            shop.store.signed.charged(order.number, CardPayment(result.authorization_id, card.last_four))
            shop.store.clear_cart(order.session)
        await _capture(shop, order)
    except PaymentError:
        return _problem(words.CARD_LOST, again=True)
    return _answer({"next": _outcome_of(order)})


async def _capture(shop: Shop, order: ShopOrder) -> None:
    """Capture the whole amount at once. If there is no answer, the staff can repeat the capture in the back office."""
    operation = ShopOperation(order.checkout_key, order.number, "capture", order.amount)
    if shop.store.write_down(operation).state != "done":
        with contextlib.suppress(PaymentError):
            await carry_out(shop, order.provider_order_id or "", operation)


async def _cancel(shop: Shop, order: ShopOrder) -> None:
    """Void the whole order, because the shop cannot charge its card. The buyer then pays nothing."""
    reference = str(uuid.uuid5(uuid.UUID(order.checkout_key), "void"))
    operation = shop.store.write_down(ShopOperation(reference, order.number, "void", order.amount))
    shop.store.signed.over(order.number)
    if order.provider_order_id is not None:
        with contextlib.suppress(PaymentError):
            await carry_out(shop, order.provider_order_id, operation)


async def _refresh_closed(shop: Shop, order: ShopOrder, closed: str) -> ShopOrder:
    """Read the state of an order after its window was closed. If the order has ended, the next click makes a new one."""
    with contextlib.suppress(PaymentError):
        await refresh(shop, order)
    order = _there(shop, order.number)
    ended = order.status in FINAL and order.status != "Approved"
    if ended or (closed in ENDED and order.status != "Approved"):
        shop.store.signed.over(order.number)
    return order


def _own_order(request: Request, number: str) -> ShopOrder:
    if re.fullmatch(r"[0-9]{1,9}", number, re.ASCII) is None:
        raise HTTPException(404)
    order = shop_of(request).store.order(int(number))
    if order is None or order.session != visitor(request).session:
        raise HTTPException(404)
    return order


def _there(shop: Shop, number: int) -> ShopOrder:
    order = shop.store.order(number)
    assert order is not None
    return order


def _keys(request: Request) -> WebhookKeys:
    settings = shop_of(request).settings
    if not settings.signs or settings.webhook_keys is None:
        raise HTTPException(404)
    return settings.webhook_keys


def _outcome_of(order: ShopOrder) -> str:
    return f"/confirm?order={order.number}"


def _answer(content: dict[str, Any]) -> Response:
    return JSONResponse(content, headers={"Cache-Control": "no-store"})


def _problem(text: str, **more: bool) -> Response:
    return JSONResponse({"problem": text, **more}, 409, headers={"Cache-Control": "no-store"})


routes = [
    Route("/sign", sign_cart, methods=["POST"]),
    Route("/card", take_card, methods=["POST"]),
]
