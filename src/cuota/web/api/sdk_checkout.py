"""`POST /sdk/v1/checkouts` and `/sdk/v1/checkouts/leave`: the calls of the browser script `pay.js`.

A merchant's server signs the raw body. The merchant's page passes body and signature to `pay.js`, which sends them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from contextlib import suppress
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.checkout.ending import Charging
from cuota.core.checkout.start import Display, Integration
from cuota.core.instant import timestamp
from cuota.core.merchant import Merchant
from cuota.core.order.order import Final
from cuota.core.refusal import Code, FieldError, Refused
from cuota.core.wire.strict_json import BadJson, read_json
from cuota.db.order.documents import encode
from cuota.flows.checkout.issue_card import issues_cards
from cuota.flows.checkout.leave_checkout import leave_checkout
from cuota.flows.checkout.start_checkout import Begun, find_started, start_checkout
from cuota.flows.order.checkout_result import close_reason, result_of
from cuota.flows.order.create_order import checkout_url
from cuota.flows.settle import order_not_found
from cuota.web.addresses import BadAddress, origin_of, read_address
from cuota.web.api.additional import read_additional
from cuota.web.api.query import unread_query
from cuota.web.api.sdk_body import read_sdk_body
from cuota.web.api.signed_body import verified_body
from cuota.web.body import MOST_SIGNED_BYTES, read_bytes, require_json
from cuota.web.service import Service, service_of

SIGNATURE = "x-pay-signature"
ADDITIONAL = "x-pay-additional"
LONGEST_ADDITIONAL = 4096
# CORS: the page of any site may read every answer. That is safe, because these calls use no cookies, only signatures.
READABLE = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"retry-after, x-request-id"),
)
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "POST",
    "Access-Control-Allow-Headers": f"content-type, {SIGNATURE}, {ADDITIONAL}",
    "Access-Control-Max-Age": "7200",
}


async def preflight(request: Request) -> Response:
    """Answer the CORS preflight. Any page may send the call; the signature and the origin decide about it later."""
    del request
    return Response(status_code=204, headers=_PREFLIGHT)


async def start(request: Request) -> Response:
    """Start a checkout: verify the signature, then the origin, then the fields.

    A request that repeats the same signed body gets the same order.
    """
    service = service_of(request)
    merchant, body, signed = await _signed(request)
    origin = _origin(request, service, merchant)
    checkout = read_sdk_body(body, merchant, https_only=not service.settings.sandbox, gateway=False)
    if checkout.start.integration is Integration.VIRTUAL_CARD and not issues_cards(service.context):
        error = FieldError("integrationType", "invalid", "virtual cards are not offered here")
        raise Refused(Code.VALIDATION_FAILED, "Virtual cards are not offered here.", errors=(error,))
    warnings: list[dict[str, str]] = []
    additional = _additional(request, body, warnings)
    begin = replace(
        checkout.start, body_hash=hashlib.sha256(signed).digest(), origin=origin, additional=additional
    )
    order = replace(checkout.order, warnings=[*checkout.order.warnings, *warnings, *unread_query(request)])
    begun = await start_checkout(service.context, merchant, order, begin, auto_capture=checkout.capture)
    return answer(service, begun, begun.start.display)


async def leave(request: Request) -> Response:
    """End the checkout because the shopper left the merchant's page. A final order keeps its status."""
    service = service_of(request)
    merchant, _, signed = await _signed(request)
    _origin(request, service, merchant)
    body_hash = hashlib.sha256(signed).digest()
    begun = await find_started(service.context, merchant, body_hash)
    if begun is None:
        raise order_not_found()
    with suppress(Final, Charging):
        await leave_checkout(service.context, merchant.merchant_id, begun.order.order_id)
    ended = await find_started(service.context, merchant, body_hash)
    assert ended is not None
    return answer(service, ended, ended.start.display)


async def _signed(request: Request) -> tuple[Merchant, dict[str, Any], bytes]:
    require_json(request)
    signed = await read_bytes(request, MOST_SIGNED_BYTES)
    context, signature = service_of(request).context, request.headers.get(SIGNATURE)
    merchant, body = await verified_body(context, signed, signature)
    request.scope["merchant_id"] = merchant.merchant_id
    return merchant, body, signed


def _origin(request: Request, service: Service, merchant: Merchant) -> str | None:
    """Return the origin of the page that sent the request. Raises Refused(origin_not_registered).

    In production, the merchant must have registered the origin. The sandbox accepts every site except an opaque origin
    (`null`). For a request without an Origin header it returns None.
    """
    given = request.headers.get("origin")
    if given in merchant.origins:
        return given
    if given is None:
        # A browser always sends Origin here, so this request comes from a program. No page gets messages from the checkout.
        if service.settings.sandbox:
            return None
        message = "The request has no Origin header. Send this call with pay.js from a page: the browser adds the header."
    elif service.settings.sandbox and _is_site(given):
        return given
    else:
        message = f"The origin {given[:200]} is not registered. Register it: cuota merchant update NAME --origin ORIGIN."
        if given == "null":
            message = (
                "A page without an origin of its own (sandboxed, file: or data:) cannot start a checkout."
            )
    raise Refused(Code.ORIGIN_NOT_REGISTERED, message)


def _is_site(origin: str) -> bool:
    try:
        return origin_of(read_address(origin, https_only=False)) == origin
    except BadAddress:
        return False


def _additional(
    request: Request, body: dict[str, Any], warnings: list[dict[str, str]]
) -> dict[str, object] | None:
    """Read the additional data from the signed body, or else from the header that the page's click event added."""
    header = request.headers.get(ADDITIONAL)
    today = service_of(request).context.now().date()
    if body.get("additionalData") is not None or not header:
        return read_additional("sdk", body.get("additionalData"), today, warnings)
    padded = header[:LONGEST_ADDITIONAL] + "=" * (-len(header) % 4)
    try:
        value = read_json(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, BadJson):
        value = "unreadable"
    return read_additional("click_event", value, today, warnings)


def answer(service: Service, begun: Begun, display: Display) -> Response:
    """Answer with the checkout. The answer is the same whether the order is new or an earlier request created it."""
    order = begun.order
    result = result_of(order, begun.payer, begun.start)
    reason = close_reason(order, left=begun.left)
    address = f"{checkout_url(service.context, order.merchant_id, begun.token)}&display={display}"
    content = {
        "orderId": order.order_id,
        "token": begun.token,
        "checkoutUrl": address,
        "expiryDateTime": timestamp(order.expires_at),
        "orderStatus": order.status,
        "warnings": begun.warnings,
        **({"result": result} if result else {}),
        **({"closeReason": reason} if reason else {}),
    }
    return Response(encode(content), media_type="application/json", headers={"Cache-Control": "no-store"})
