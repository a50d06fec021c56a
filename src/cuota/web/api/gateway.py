"""`/orders/authorize`: what a merchant signed starts a checkout, and the browser is led to it.

JSON from a server, or the browser's own form post or query. The same signed text again is the same order.
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
_SHOWN_TEXT = 4000  # characters of the signed text that the sandbox shows beside a wrong signature


@dataclass(frozen=True, slots=True)
class _Signed:
    """A request whose signature is right: who signed which text, the body, and what was wrong with its form so far."""

    merchant: Merchant
    text: bytes
    body: dict[str, Any]
    reader: Reader
    indexes: Sequence[int] = ()


async def authorize(request: Request) -> Response:
    """Verify the signature, then the fields; answer 303. A person in front of a browser is refused by a page."""
    if request.method == "HEAD":
        # Whoever only looks at a link starts nothing.
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
        message = "The database could not answer now. The same form again is the same order."
        return refusal(request, Refused(Code.UNAVAILABLE, message, retry_after=1), back)


def in_browser(request: Request) -> bool:
    """Whether a person looks at the answer: no script asks for a page."""
    json = request.method == "POST" and media_type(request)[0] == "application/json"
    return not json and "text/html" in request.headers.get("accept", "").lower()


class GatewayForm(ProblemForm):
    """A shopper whose request was not begun sees a page; a merchant's server reads JSON."""

    def not_begun(self, request: Request, refused: Refused) -> Response:
        """Answer with the page or with the error body."""
        return refusal(request, refused, None) if in_browser(request) else self.answer(request, refused)

    def page_kind(self, request: Request) -> Hashable | None:
        """There is one page."""
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
            raise _told(refused, text) from None
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


def _told(refused: Refused, text: bytes) -> Refused:
    """A form's signature is not made over what is sent: the sandbox says over which text it is."""
    if refused.code is not Code.INVALID_SIGNATURE:
        return refused
    message = (
        "The signature does not verify. It is made over the other fields, sorted by name and form-encoded."
    )
    facts = dict(refused.facts)
    if facts:
        facts["hint"] = f"{facts['hint']} The text that is signed: {text.decode()[:_SHOWN_TEXT]}"
    return Refused(refused.code, message, facts=facts)


def _signed_back(service: Service, signed: _Signed) -> str | None:
    """The merchant's own way back, whatever else is wrong with the request."""
    address = signed.body.get("redirectCancelUrl")
    if not isinstance(address, str):
        return None
    with suppress(BadAddress):
        return read_address(address, https_only=not service.settings.sandbox)
    return None


async def _start(service: Service, signed: _Signed) -> Begun:
    asked = _read(service, signed)
    warnings = list(asked.order.warnings)
    today = service.context.now().date()
    additional = read_additional("gateway", signed.body.get("additionalData"), today, warnings)
    begin = replace(asked.start, body_hash=hashlib.sha256(signed.text).digest(), additional=additional)
    order = replace(asked.order, warnings=warnings)
    return await start_checkout(service.context, signed.merchant, order, begin, auto_capture=asked.capture)


def _read(service: Service, signed: _Signed) -> SdkRequest:
    """Read the fields; raises Refused with every failure, those of the form too."""
    reader, body = signed.reader, signed.body
    if body.get("integrationType") == Integration.VIRTUAL_CARD:
        # The text that a button's page holds must not become an order that nobody charges a card for.
        wrong = WrongField("invalid", "must be api: a virtual card is started by the browser's script only")
        reader.fail("integrationType", wrong)
    try:
        asked = read_sdk_body(body, signed.merchant, https_only=not service.settings.sandbox, gateway=True)
    except Refused as refused:
        if not refused.errors:
            raise
        # The form itself is read alike in both profiles.
        reads = ACCEPTED_BY in refused.facts and not reader.errors
        reader.errors += [
            as_sent(error, signed.indexes) if signed.indexes else error for error in refused.errors
        ]
        raise _all_of(reader, lenient_reads=reads) from None
    warnings = reader.finish()
    found = [FieldError(**warning) for warning in asked.order.warnings]
    sent = [as_sent(error, signed.indexes) if signed.indexes else error for error in found]
    warnings += [{"field": error.field, "code": error.code, "message": error.message} for error in sent]
    return replace(asked, order=replace(asked.order, warnings=warnings))


def _all_of(reader: Reader, *, lenient_reads: bool) -> Refused:
    """Every failure of the form and of its fields as one refusal, under the names that were sent."""
    try:
        reader.finish()
    except Refused as refused:
        return hinted(refused) if lenient_reads else refused
    raise AssertionError("only a reader with errors comes here")


def _see_checkout(request: Request, begun: Begun) -> Response:
    """To the checkout. A server that asked also learns which order it is; who paid is for `GET /order` to say."""
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
