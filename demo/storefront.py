"""The buyer's pages: products, cart, checkout, and the result of the checkout."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import uuid

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from . import checkout, words
from .catalog import MOST_OF_ONE, PRODUCTS
from .payments import PaymentError
from .signed import DISPLAYS, WAYS, Wish
from .store import ShopOrder
from .web import form, go, page, shop_of, visitor


async def products(request: Request) -> Response:
    """Show the products."""
    return page(request, "products.html", products=PRODUCTS.values())


async def show_cart(request: Request) -> Response:
    """Show the cart, with a new idempotency key in its checkout form. Pay in four is offered only within its limits."""
    shop = shop_of(request)
    limits = None  # the limits are unknown: the provider checks the amount at the checkout
    with contextlib.suppress(PaymentError, TimeoutError):
        async with asyncio.timeout(1):
            limits = await shop.payments.limits()
    return page(
        request,
        "cart.html",
        checkout_key=str(uuid.uuid4()),
        most=MOST_OF_ONE,
        limits=limits,
        wish=Wish.read(request.query_params) if shop.settings.signs else None,
        ways=WAYS,
        displays=DISPLAYS,
    )


async def change_cart(request: Request) -> Response:
    """Add one item of a product to the cart, or set its quantity."""
    fields = await form(request)
    store, session, sku = shop_of(request).store, visitor(request).session, fields.get("sku", "")
    if sku not in PRODUCTS:
        raise HTTPException(400)
    before = {line.sku: line.quantity for line in store.cart(session).lines}.get(sku, 0)
    quantity = fields.get("quantity", str(before + 1))
    if re.fullmatch(r"[0-9]{1,3}", quantity) is None:
        raise HTTPException(400)
    store.put(session, sku, min(int(quantity), MOST_OF_ONE))
    return go(request, "/cart")


async def check_out(request: Request) -> Response:
    """Create the order at the provider and send the buyer there."""
    fields = await form(request)
    shop, session = shop_of(request), visitor(request).session
    cart = shop.store.cart(session)
    if not cart.lines:
        return go(request, "/cart")
    if fields.get("amount") != str(cart.amount):
        return go(request, "/cart", "bad", words.CHANGED)
    try:
        url = await checkout.begin(shop, session, _key(fields.get("key", "")), cart)
    except PaymentError as error:
        return go(request, "/cart", "bad", words.checkout_failed(error))
    return go(request, url)


async def outcome(request: Request) -> Response:
    """Show the result of the checkout. Both return addresses are this page, because only the provider's record decides."""
    shop, order = shop_of(request), _returned_order(request)
    wish = shop.store.signed.wish(order.number)
    try:
        if shop.store.signed.way(order.number):
            order = await checkout.claimed(shop, order, request.query_params.get("orderId", ""))
        payment = checkout.as_told(shop, order) or await checkout.refresh(shop, order)
    except PaymentError:
        return page(request, "outcome.html", status=503, order=order, status_word="Unknown", wish=wish)
    word = payment.status if payment else "Created"
    if word == "Approved" and shop.store.signed.card_is_due(order.number):
        word = "CardDue" if payment and payment.open else "Canceled"
    return page(request, "outcome.html", order=order, status_word=word, wish=wish)


def _returned_order(request: Request) -> ShopOrder:
    """Find the order that the buyer returned from. Answers 404 if this browser may not see it.

    The browser that placed the order may see it, and also a browser that sends the provider's id of the order, which cannot
    be guessed: a phone may open the return address in another browser.
    """
    number = request.query_params.get("order", "")
    valid = re.fullmatch(r"[0-9]{1,9}", number) is not None
    order = shop_of(request).store.order(int(number)) if valid else None
    if order is None:
        raise HTTPException(404)
    sent_id = request.query_params.get("orderId", "").encode()
    order_id = (order.provider_order_id or "").encode()
    if order.session != visitor(request).session and not (
        order_id and hmac.compare_digest(sent_id, order_id)
    ):
        raise HTTPException(404)
    return order


def _key(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise HTTPException(400) from None


routes = [
    Route("/", products),
    Route("/cart", show_cart, methods=["GET"]),
    Route("/cart", change_cart, methods=["POST"]),
    Route("/checkout", check_out, methods=["POST"]),
    Route("/confirm", outcome),
    Route("/cancel", outcome),
]
