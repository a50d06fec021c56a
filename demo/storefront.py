"""The pages of a buyer: products, cart, checkout, and how it ended."""

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
    """Show what is for sale."""
    return page(request, "products.html", products=PRODUCTS.values())


async def show_cart(request: Request) -> Response:
    """Show the cart, with a fresh key in its checkout form, and the offer only where it can be had."""
    shop = shop_of(request)
    limits = None  # not known: the provider will tell at checkout
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
    """Add one of a product, or set how many of it."""
    fields = await form(request)
    store, session, sku = shop_of(request).store, visitor(request).session, fields.get("sku", "")
    if sku not in PRODUCTS:
        raise HTTPException(400)
    before = {line.sku: line.quantity for line in store.cart(session).lines}.get(sku, 0)
    wanted = fields.get("quantity", str(before + 1))
    if re.fullmatch(r"[0-9]{1,3}", wanted) is None:
        raise HTTPException(400)
    store.put(session, sku, min(int(wanted), MOST_OF_ONE))
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
    """Show how the checkout ended. Both return addresses lead here: only the provider's word counts."""
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
    """Find the order that a return is about.

    It is shown to the browser that placed it, or to one that brings the provider's unguessable id of it: a
    phone may come back in another browser than it left from.
    """
    number = request.query_params.get("order", "")
    known = re.fullmatch(r"[0-9]{1,9}", number) is not None
    order = shop_of(request).store.order(int(number)) if known else None
    if order is None:
        raise HTTPException(404)
    claimed = request.query_params.get("orderId", "").encode()
    known_id = (order.provider_order_id or "").encode()
    if order.session != visitor(request).session and not (
        known_id and hmac.compare_digest(claimed, known_id)
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
