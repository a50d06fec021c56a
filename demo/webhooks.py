"""Receives the provider's webhooks: verifies both signatures, stores each event once, and then updates the order."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cuota.client import BadWebhook, verify_webhook

from .checkout import learn, recognize
from .records import Payment, WebhookEvent
from .web import shop_of

LIMIT = 1024 * 1024


async def receive(request: Request) -> Response:
    """Verify a webhook, store its event, update the order, and answer. No call to another service delays the answer."""
    shop = shop_of(request)
    keys = shop.settings.webhook_keys
    if keys is None:
        raise HTTPException(404)
    body = await _raw(request)
    try:
        event = verify_webhook(body, request.headers, keys.webhook, keys.signing)
    except BadWebhook:
        return Response(status_code=401)
    webhook_event = WebhookEvent.read(event)
    if shop.store.keep_told(webhook_event, body.decode()):
        # Webhooks may arrive late, so use the newest event. They may also arrive before the answer that creates the order.
        newest = shop.store.newest_record(webhook_event.order_id)
        payment = None if newest is None else Payment.read(newest)
        order = shop.store.order_at_provider(webhook_event.order_id)
        if order is None and payment is not None:
            # If a page opened the order, this webhook may be the first message about it: the page may be closed already.
            order = recognize(shop, payment)
        if order is not None and payment is not None:
            learn(shop, order, payment)
    return Response(status_code=204)


async def _raw(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LIMIT:
            raise HTTPException(413)
    return bytes(body)


routes = [Route("/webhooks", receive, methods=["POST"])]
