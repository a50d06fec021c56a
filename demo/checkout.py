"""From a cart to a paid order: create it at the provider, send the buyer there, read what became of it."""

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
    """Place the order and return the address where the buyer pays, or raise PaymentError.

    The order and its key are written down first: a second click finds them and creates nothing new.
    """
    order = shop.store.place(session, key, cart)
    if order.redirect_url is not None:
        return order.redirect_url
    created = await shop.payments.create_order(order_body(shop.settings, order), key)
    shop.store.created(order.number, created.order_id, created.redirect_url)
    return created.redirect_url


def order_body(settings: ShopSettings, order: ShopOrder) -> JsonObject:
    """Describe the order as `POST /order` takes it. Amounts are decimal strings."""
    # Without the secrets to verify it with, what is told would be worth nothing: then the shop only asks.
    told_at = {} if settings.webhook_url is None else {"statusCallbackUrl": settings.webhook_url}
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
            **told_at,
        },
    }


async def refresh(shop: Shop, order: ShopOrder) -> Payment | None:
    """Ask the provider how an order stands and store that; None where it never got there.

    The question goes by the order id that the shop stored. What the browser brings back is not believed.
    """
    if order.provider_order_id is None:
        return None
    payment = await shop.payments.read_order(order.provider_order_id)
    learn(shop, order, payment)
    return payment


def recognize(shop: Shop, payment: Payment) -> ShopOrder | None:
    """Find the order that the provider made from a text of ours, by our number in it, and remember its id."""
    number = re.fullmatch(r"AO-([0-9]{1,9})", payment.reference, re.ASCII)
    order = shop.store.order(int(number[1])) if number else None
    if order is None or not shop.store.signed.way(order.number):
        return None
    if order.provider_order_id is None and order.amount == payment.amount:
        shop.store.link(order.number, payment.order_id)
        order = shop.store.order(order.number)
    return order if order is not None and order.provider_order_id == payment.order_id else None


async def claimed(shop: Shop, order: ShopOrder, order_id: str) -> ShopOrder:
    """The page says what the provider calls an order: believed where the provider's own record says so too."""
    if order.provider_order_id is not None or re.fullmatch(r"[\w-]{1,64}", order_id, re.ASCII) is None:
        return order
    try:
        payment = await shop.payments.read_order(order_id)
    except PaymentError as error:
        if error.undecided:
            raise
        return order  # there is no such order of ours
    if payment.reference == order.name:
        recognize(shop, payment)
    return shop.store.order(order.number) or order


def learn(shop: Shop, order: ShopOrder, payment: Payment) -> None:
    """Store how an order stands, whether the provider was asked or told it by itself."""
    first_told = shop.store.settle(order.number, payment.status)
    if first_told and payment.status == "Approved" and not shop.store.signed.card_is_due(order.number):
        shop.store.clear_cart(order.session)
    for movement in payment.movements:
        # An operation whose answer was lost, but which the record lists, was done.
        shop.store.finish(movement.operation, "done")


def as_told(shop: Shop, order: ShopOrder) -> Payment | None:
    """How an order stands by the webhooks that came; None where the provider knows more, and must be asked.

    It does while an order is undecided, and while the shop has moved money of which no webhook has told yet.
    """
    record = None if order.provider_order_id is None else shop.store.newest_record(order.provider_order_id)
    if record is None:
        return None
    payment = Payment.read(record)
    listed = {movement.operation for movement in payment.movements}
    known = payment.status in FINAL and listed.issuperset(shop.store.asked_for(order.number))
    return payment if known else None
