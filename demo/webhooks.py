"""What the provider tells the shop by itself: believed only with both signatures, kept once, then looked at."""

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
    """Verify, keep, and answer at once: nothing here waits for anybody."""
    shop = shop_of(request)
    keys = shop.settings.webhook_keys
    if keys is None:
        raise HTTPException(404)
    body = await _raw(request)
    try:
        event = verify_webhook(body, request.headers, keys.webhook, keys.signing)
    except BadWebhook:
        return Response(status_code=401)
    told = WebhookEvent.read(event)
    if shop.store.keep_told(told, body.decode()):
        # One that came late tells of a state that is over; one may also come before the order's own answer.
        newest = shop.store.newest_record(told.order_id)
        payment = None if newest is None else Payment.read(newest)
        order = shop.store.order_at_provider(told.order_id)
        if order is None and payment is not None:
            # Of an order that a page opened, this may be the first that the shop hears: perhaps its page is gone.
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
