"""From a basket to a paid order: create it at the provider, send the buyer there, read what became of it."""

from __future__ import annotations

from .catalog import Basket
from .money import to_json
from .records import JsonObject, Payment
from .settings import Settings
from .store import FINAL, Order
from .web import Shop


async def begin(shop: Shop, session: str, key: str, basket: Basket) -> str:
    """Place the order and return the address where the buyer pays, or raise PaymentError.

    The order and its key are written down first: a second click finds them and creates nothing new.
    """
    order = shop.store.place(session, key, basket)
    if order.redirect_url is not None:
        return order.redirect_url
    created = await shop.payments.create_order(order_body(shop.settings, order), key)
    shop.store.created(order.number, created.order_id, created.redirect_url)
    return created.redirect_url


def order_body(settings: Settings, order: Order) -> JsonObject:
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


async def refresh(shop: Shop, order: Order) -> Payment | None:
    """Ask the provider how an order stands and store that; None where it never got there.

    The question goes by the order id that the shop stored. What the browser brings back is not believed.
    """
    if order.provider_order_id is None:
        return None
    payment = await shop.payments.read_order(order.provider_order_id)
    learn(shop, order, payment)
    return payment


def learn(shop: Shop, order: Order, payment: Payment) -> None:
    """Store how an order stands, whether the provider was asked or told it by itself."""
    first_told = shop.store.settle(order.number, payment.status)
    if first_told and payment.status == "Approved":
        shop.store.clear_basket(order.session)
    for movement in payment.movements:
        # An operation whose answer was lost, but which the record lists, was done.
        shop.store.finish(movement.reference, "done")


def as_told(shop: Shop, order: Order) -> Payment | None:
    """How an order stands by the webhooks that came; None where the provider knows more, and must be asked.

    It does while an order is undecided, and while the shop has moved money of which no webhook has told yet.
    """
    record = None if order.provider_order_id is None else shop.store.newest_record(order.provider_order_id)
    if record is None:
        return None
    payment = Payment.read(record)
    listed = {movement.reference for movement in payment.movements}
    known = payment.status in FINAL and listed.issuperset(shop.store.asked_for(order.number))
    return payment if known else None
