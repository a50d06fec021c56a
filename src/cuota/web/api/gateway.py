"""`/orders/authorize`, the gateway: starts a checkout from a request that the merchant signed, and redirects to it.

A merchant's server sends JSON; a shopper's browser sends a form or a query. A request that repeats the same signed text
gets the same order.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from cuota.core.checkout.start import Display, Integration
from cuota.core.instant import timestamp
from cuota.core.merchant import BodyProfile, Merchant
from cuota.core.refusal import Code, FieldError, Refused
from cuota.db.order.documents import encode
from cuota.db.pool import BUSY, LOST
from cuota.flows.checkout.start_checkout import Begun, start_checkout
from cuota.flows.checkout.verify_signature import verify_signature
from cuota.flows.order.create_order import checkout_url
from cuota.web.addresses import BadAddress, read_address
from cuota.web.api.additional import read_additional
from cuota.web.api.gateway_form import SIGNATURE, as_sent, fields_of, one_of, read_form, signed_text
from cuota.web.api.profile import ACCEPTED_BY, hinted
from cuota.web.api.sdk_body import SdkRequest, merchant_id_of, read_sdk_body
from cuota.web.api.signed_body import verified_body
from cuota.web.body import MOST_FORM_BYTES, MOST_SIGNED_BYTES, media_type, read_bytes, require_json
from cuota.web.error_form import ProblemForm
from cuota.web.fields import Reader, WrongField
from cuota.web.free_text import fields_without_cards
from cuota.web.pages.refusal import refusal
from cuota.web.service import Service, service_of

FORM = "application/x-www-form-urlencoded"
_SHOWN_TEXT = (
    4000  # If a signature is wrong, the sandbox shows at most this many characters of the signed text.
)


@dataclass(frozen=True, slots=True)
class _Signed:
    """A request with a valid signature.

    `text` is the signed text, and `reader` holds the failures found while the form was read. `indexes` are the indexes of
    the line items as they were sent in a form; empty for JSON.
    """

    merchant: Merchant
    text: bytes
    body: dict[str, Any]
    reader: Reader
    indexes: Sequence[int] = ()


async def authorize(request: Request) -> Response:
    """Verify the signature, then the fields, and answer 303. A browser gets refusals as a page, a server as JSON."""
    if request.method == "HEAD":
        # A client that only checks a link must not start a checkout.
        raise HTTPException(405, headers={"Allow": "GET, POST"})
    back = None
    try:
        signed = await _signed(request)
        back = _signed_back(service_of(request), signed)
        return _see_checkout(request, await _start(service_of(request), signed))
    except Refused as refused:
        if not in_browser(request):
            raise
        return refusal(request, refused, back)
    except (*LOST, *BUSY):
        if not in_browser(request):
            raise
        message = (
            "The database could not answer. Send the same form again; it will not create a second order."
        )
        return refusal(request, Refused(Code.UNAVAILABLE, message, retry_after=1), back)


def in_browser(request: Request) -> bool:
    """Return whether a person sees the answer in a browser: the request is not JSON, and accepts HTML."""
    json = request.method == "POST" and media_type(request)[0] == "application/json"
    return not json and "text/html" in request.headers.get("accept", "").lower()


class GatewayForm(ProblemForm):
    """The gateway's error form for requests whose handler was not called: a page for browsers, JSON for servers."""

    def not_begun(self, request: Request, refused: Refused) -> Response:
        """Answer with the page or with the JSON error body."""
        return refusal(request, refused, None) if in_browser(request) else self.answer(request, refused)

    def page_kind(self, request: Request) -> Hashable | None:
        """Return the same value for every browser, because there is only one page."""
        return "page" if in_browser(request) else None


GATEWAY_ERRORS = GatewayForm()


async def _signed(request: Request) -> _Signed:
    context = service_of(request).context
    kind, charset = media_type(request)
    is_form = request.method == "GET" or kind == FORM
    if is_form:
        if request.method == "POST" and charset not in {"", "utf-8", "utf8"}:
            raise Refused(Code.UNSUPPORTED_MEDIA_TYPE, "Send the form in UTF-8.")
        encoded = (
            request.scope["query_string"]
            if request.method == "GET"
            else await read_bytes(request, MOST_FORM_BYTES)
        )
        fields = fields_of(encoded)
        merchant_id = merchant_id_of({"merchantId": one_of(fields, "merchantId")})
        text, signature = signed_text(fields), one_of(fields, SIGNATURE)
        try:
            merchant = await verify_signature(context, merchant_id, text, signature)
        except Refused as refused:
            raise _with_form_hint(refused, text) from None
        reader = Reader(lenient=merchant.profile is BodyProfile.LENIENT)
        body, indexes = read_form(fields_without_cards(fields, encoded), reader)
    else:
        if kind != "application/json":
            message = f"Send JSON as application/json, or a form as {FORM}."
            raise Refused(Code.UNSUPPORTED_MEDIA_TYPE, message)
        require_json(request)
        text, indexes = await read_bytes(request, MOST_SIGNED_BYTES), []
        merchant, body = await verified_body(context, text, request.headers.get("x-pay-signature"))
        reader = Reader(lenient=merchant.profile is BodyProfile.LENIENT)
    request.scope["merchant_id"] = merchant.merchant_id
    return _Signed(merchant, text, body, reader, indexes)


def _with_form_hint(refused: Refused, text: bytes) -> Refused:
    """Explain the signature of a form, which covers a text built from the fields. The sandbox also shows that text."""
    if refused.code is not Code.INVALID_SIGNATURE:
        return refused
    message = (
        "The signature is not valid. Sign all other fields of the form, sorted by name and form-encoded."
    )
    facts = dict(refused.facts)
    if facts:
        facts["hint"] = f"{facts['hint']} The text that is signed: {text.decode()[:_SHOWN_TEXT]}"
    return Refused(refused.code, message, facts=facts)


def _signed_back(service: Service, signed: _Signed) -> str | None:
    """Return the signed cancel address, so that an error page can link to it; None if it is missing or invalid."""
    address = signed.body.get("redirectCancelUrl")
    if not isinstance(address, str):
        return None
    with suppress(BadAddress):
        return read_address(address, https_only=not service.settings.sandbox)
    return None


async def _start(service: Service, signed: _Signed) -> Begun:
    checkout = _read(service, signed)
    warnings = list(checkout.order.warnings)
    today = service.context.now().date()
    additional = read_additional("gateway", signed.body.get("additionalData"), today, warnings)
    start = replace(checkout.start, body_hash=hashlib.sha256(signed.text).digest(), additional=additional)
    order = replace(checkout.order, warnings=warnings)
    return await start_checkout(service.context, signed.merchant, order, start, auto_capture=checkout.capture)


def _read(service: Service, signed: _Signed) -> SdkRequest:
    """Read the fields of the request. Raises Refused with all failures, including those of reading the form."""
    reader, body = signed.reader, signed.body
    if body.get("integrationType") == Integration.VIRTUAL_CARD:
        # A page with the pay button contains a signed text for a virtual card. If that text were sent here, it would make
        # an order without a virtual card, which the merchant could not charge.
        wrong = WrongField("invalid", "must be api: only the browser script pay.js can start a virtual card")
        reader.fail("integrationType", wrong)
    try:
        checkout = read_sdk_body(body, signed.merchant, https_only=not service.settings.sandbox, gateway=True)
    except Refused as refused:
        if not refused.errors:
            raise
        # Failures of the form itself are the same in both profiles.
        lenient_reads = ACCEPTED_BY in refused.facts and not reader.errors
        reader.errors += [
            as_sent(error, signed.indexes) if signed.indexes else error for error in refused.errors
        ]
        raise _all_of(reader, lenient_reads=lenient_reads) from None
    warnings = reader.finish()
    found = [FieldError(**warning) for warning in checkout.order.warnings]
    sent = [as_sent(error, signed.indexes) if signed.indexes else error for error in found]
    warnings += [{"field": error.field, "code": error.code, "message": error.message} for error in sent]
    return replace(checkout, order=replace(checkout.order, warnings=warnings))


def _all_of(reader: Reader, *, lenient_reads: bool) -> Refused:
    """Return one refusal with all failures of the form and its fields, with the field names that were sent.

    `lenient_reads`: the lenient profile would accept the request, so add a hint about it.
    """
    try:
        reader.finish()
    except Refused as refused:
        return hinted(refused) if lenient_reads else refused
    raise AssertionError("_all_of was called for a reader without errors")


def _see_checkout(request: Request, begun: Begun) -> Response:
    """Answer with a redirect to the checkout. For a server, the body also names the order.

    The body has no payment result, because anybody may repeat the signed text. `GET /order` returns the result.
    """
    order = begun.order
    address = checkout_url(service_of(request).context, order.merchant_id, begun.token)
    address = f"{address}&display={Display.REDIRECT}"
    headers = {"Location": address, "Cache-Control": "no-store"}
    if in_browser(request):
        link = html.escape(address)
        text = f'<!doctype html><title>Your payment</title><a href="{link}">Go on to your payment</a>'
        headers["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'"
        return Response(text, 303, headers, media_type="text/html")
    content = {
        "orderId": order.order_id,
        "token": begun.token,
        "checkoutUrl": address,
        "expiryDateTime": timestamp(order.expires_at),
        "orderStatus": order.status,
        "warnings": begun.warnings,
    }
    return Response(encode(content), 303, headers, media_type="application/json")
