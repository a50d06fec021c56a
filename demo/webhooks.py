"""What the provider tells the shop by itself: believed only with both signatures, kept once, then looked at."""

from __future__ import annotations

import base64
import hmac
import json
import re
import time
from decimal import Decimal

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .checkout import learn
from .records import Payment
from .settings import WebhookKeys
from .store import Told
from .web import shop_of

TOLERANCE = 300  # seconds that a timestamp may be off
LIMIT = 1024 * 1024


async def receive(request: Request) -> Response:
    """Verify, keep, and answer at once: nothing here waits for anybody."""
    shop = shop_of(request)
    if shop.settings.webhook_keys is None:
        raise HTTPException(404)
    body = await _raw(request)
    if not genuine(shop.settings.webhook_keys, request.headers, body, time.time()):
        return Response(status_code=401)
    event = json.loads(body, parse_float=Decimal)
    told = Told.read(event)
    if shop.store.keep_told(told, body.decode()):
        order = shop.store.order_at_provider(told.order_id)
        # One that came late tells of a state that is over; one may also come before the order's own answer.
        newest = shop.store.newest_record(told.order_id)
        if order is not None and newest is not None:
            learn(shop, order, Payment.read(newest))
    return Response(status_code=204)


def genuine(keys: WebhookKeys, headers: Headers, body: bytes, now: float) -> bool:
    """Whether both signatures fit these very bytes, and the timestamp is less than five minutes off."""
    name, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not re.fullmatch(r"\w{1,100}", name, re.ASCII) or not re.fullmatch(r"[0-9]{1,12}", sent_at):
        return False
    if abs(now - int(sent_at)) > TOLERANCE:
        return False
    wanted = "v1," + _sign(keys.webhook, f"{name}.{sent_at}.".encode() + body)
    # Two stand here while a secret rotates: one must fit. All are compared, each in constant time.
    fits = [_same(given, wanted) for given in headers.get("webhook-signature", "").split(" ")]
    return any(fits) and _same(headers.get("x-pay-signature", ""), _sign(keys.signing, body))


def _sign(key: bytes, message: bytes) -> str:
    return base64.b64encode(hmac.digest(key, message, "sha256")).decode()


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("latin-1"), wanted.encode())


async def _raw(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LIMIT:
            raise HTTPException(413)
    return bytes(body)


routes = [Route("/webhooks", receive, methods=["POST"])]
