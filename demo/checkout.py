"""Turns a cart into a paid order: creates it at the provider, sends the buyer there, and reads the result."""

from __future__ import annotations

import re

from .catalog import Cart
from .money import to_json
from .payments import PaymentError
from .records import JsonObject, Payment
from .settings import ShopSettings
from .store import FINAL, ShopOrder
from .web import Shop


async def begin(shop: Shop, session: str, key: str, cart: Cart) -> str:
    """Place the order and return the address where the buyer pays. Raises PaymentError.

    The order and its idempotency key are stored before the call, so that a second click does not create a second order.
    """
    order = shop.store.place(session, key, cart)
    if order.redirect_url is not None:
        return order.redirect_url
    created = await shop.payments.create_order(order_body(shop.settings, order), key)
    shop.store.created(order.number, created.order_id, created.redirect_url)
    return created.redirect_url


def order_body(settings: ShopSettings, order: ShopOrder) -> JsonObject:
    """Make the body of `POST /order`. Amounts are decimal strings."""
    # Without its secrets, the shop cannot verify webhooks. So it sends no webhook address, and reads orders from the
    # provider instead.
    callback = {} if settings.webhook_url is None else {"statusCallbackUrl": settings.webhook_url}
    return {
        "amount": to_json(order.amount),
        "shippingAmount": to_json(order.shipping),
        "merchantReference": order.name,
        "description": f"Alder & Oak order {order.name}",
        "items": [
            {"name": line.name, "sku": line.sku, "quantity": line.quantity, "price": to_json(line.price)}
            for line in order.lines
        ],
        "merchant": {
            "redirectConfirmUrl": f"{settings.public_url}/confirm?order={order.number}",
            "redirectCancelUrl": f"{settings.public_url}/cancel?order={order.number}",
            **callback,
        },
    }


async def refresh(shop: Shop, order: ShopOrder) -> Payment | None:
    """Read an order from the provider and store its status; None if it was never created there. Raises PaymentError.

    The shop uses the provider's order id that it stored itself, never one from the browser.
    """
    if order.provider_order_id is None:
        return None
    payment = await shop.payments.read_order(order.provider_order_id)
    learn(shop, order, payment)
    return payment


def recognize(shop: Shop, payment: Payment) -> ShopOrder | None:
    """Find the shop's order for a payment that was opened with a text signed by the shop, and store the provider's id.

    The provider's record contains the shop's order number as its reference. None if no order matches.
    """
    number = re.fullmatch(r"AO-([0-9]{1,9})", payment.reference, re.ASCII)
    order = shop.store.order(int(number[1])) if number else None
    if order is None or not shop.store.signed.way(order.number):
        return None
    if order.provider_order_id is None and order.amount == payment.amount:
        shop.store.link(order.number, payment.order_id)
        order = shop.store.order(order.number)
    return order if order is not None and order.provider_order_id == payment.order_id else None


async def claimed(shop: Shop, order: ShopOrder, order_id: str) -> ShopOrder:
    """Store the provider's order id that a browser sent, if the provider's record confirms it. Returns the order.

    Raises PaymentError if the provider does not answer.
    """
    if order.provider_order_id is not None or re.fullmatch(r"[\w-]{1,64}", order_id, re.ASCII) is None:
        return order
    try:
        payment = await shop.payments.read_order(order_id)
    except PaymentError as error:
        if error.undecided:
            raise
        return order  # the shop has no such order at the provider
    if payment.reference == order.name:
        recognize(shop, payment)
    return shop.store.order(order.number) or order


def learn(shop: Shop, order: ShopOrder, payment: Payment) -> None:
    """Store the state of an order, read from the provider or received in a webhook."""
    newly_final = shop.store.settle(order.number, payment.status)
    if newly_final and payment.status == "Approved" and not shop.store.signed.card_is_due(order.number):
        shop.store.clear_cart(order.session)
    for movement in payment.movements:
        # The record lists this operation, so it was applied, even if its answer was lost.
        shop.store.finish(movement.operation, "done")


def as_told(shop: Shop, order: ShopOrder) -> Payment | None:
    """Return the state of an order from its webhooks; None if the shop must read it from the provider.

    The shop must read it while the order is not decided, and also if the shop has moved money that no webhook has
    reported yet.
    """
    record = None if order.provider_order_id is None else shop.store.newest_record(order.provider_order_id)
    if record is None:
        return None
    payment = Payment.read(record)
    listed = {movement.operation for movement in payment.movements}
    complete = payment.status in FINAL and listed.issuperset(shop.store.asked_for(order.number))
    return payment if complete else None
