"""Turns a refusal into an HTTP answer: the table of error codes and statuses, and the error body (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.core.wire.card_text import masked_tree, may_hold_card
from cuota.db.order.documents import encode

STATUS: Mapping[Code, tuple[int, str]] = {
    Code.MALFORMED_REQUEST: (400, "The request cannot be read"),
    Code.VALIDATION_FAILED: (400, "Some fields break their rules"),
    Code.AMOUNT_OUT_OF_RANGE: (400, "The amount is outside your range"),
    Code.BAD_HEADER: (400, "A header is not usable"),
    Code.UNAUTHORIZED: (401, "No valid access token"),
    Code.INSUFFICIENT_SCOPE: (403, "The credential may not do this"),
    Code.MERCHANT_SUSPENDED: (403, "New orders are suspended"),
    Code.MERCHANT_NOT_APPROVED: (403, "The account is not approved yet"),
    Code.INVALID_SIGNATURE: (401, "The signature does not verify"),
    Code.ORIGIN_NOT_REGISTERED: (403, "This page may not start a checkout"),
    Code.NOT_FOUND: (404, "There is no such thing"),
    Code.ORDER_NOT_FOUND: (404, "There is no such order"),
    Code.METHOD_NOT_ALLOWED: (405, "This method is not allowed here"),
    Code.IDEMPOTENCY_IN_PROGRESS: (409, "The first request is still running"),
    Code.BODY_TOO_LARGE: (413, "The body is too large"),
    Code.UNSUPPORTED_MEDIA_TYPE: (415, "Send JSON in UTF-8"),
    Code.IDEMPOTENCY_KEY_REUSED: (422, "This idempotency key belongs to another request"),
    Code.REFUND_EXCEEDS_CAPTURED: (422, "More than can be refunded"),
    Code.CAPTURE_EXCEEDS_AUTHORIZED: (422, "More than can be captured"),
    Code.VOID_EXCEEDS_UNCAPTURED: (422, "More than can be voided"),
    Code.DUPLICATE_REFERENCE: (422, "This reference was applied already"),
    Code.MISSING_REFERENCE: (422, "The reference is missing"),
    Code.INVALID_AMOUNT: (422, "The amount is not usable"),
    Code.ORDER_NOT_COMPLETED: (422, "The order is not approved"),
    Code.AUTHORIZATION_EXPIRED: (422, "The authorization has expired"),
    Code.DISPUTE_NOT_FOUND: (404, "There is no such dispute"),
    Code.DISPUTE_NOT_POSSIBLE: (422, "A dispute is not possible"),
    Code.DISPUTE_STATE: (409, "The dispute is in another state"),
    Code.BAD_FILE: (422, "The file is not usable"),
    Code.RETURN_NOT_POSSIBLE: (422, "A return notice is not possible"),
    Code.CHARGEBACK_OPEN: (422, "A chargeback is open"),
    Code.RATE_LIMITED: (429, "Too many requests"),
    Code.UNAVAILABLE: (503, "Not available right now"),
    Code.INTERNAL_ERROR: (500, "Something broke on our side"),
}
MEDIA_TYPE = "application/problem+json"


def status_of(refused: Refused) -> int:
    """Return the HTTP status of a refusal."""
    return STATUS[refused.code][0]


def body_of(refused: Refused, *, public_url: str, path: str, request_id: str) -> bytes:
    """Return the error body as JSON. `path` is the path of the request."""
    status, title = STATUS[refused.code]
    content: dict[str, object] = {
        "type": f"{public_url}/docs#{refused.code}",
        "title": title,
        "status": status,
        "detail": refused.message,
        "instance": path,
        "code": refused.code,
        "message": refused.message,
        "requestId": request_id,
        "errors": [
            {"field": error.field, "code": error.code, "message": error.message} for error in refused.errors
        ],
        **refused.facts,
    }
    encoded = encode(content)
    # A refusal may repeat text that was sent, which may contain a card number: a path, a field's name, a signed text.
    return encode(masked_tree(content)) if may_hold_card(encoded) else encoded


def headers_of(refused: Refused) -> dict[str, str]:
    """Return the headers that an answer to this refused request must have."""
    if refused.code is Code.UNAUTHORIZED:
        return {"WWW-Authenticate": "Bearer"}
    if refused.code is Code.INSUFFICIENT_SCOPE:
        return {"WWW-Authenticate": 'Bearer error="insufficient_scope"'}
    if refused.retry_after is not None:
        return {"Retry-After": str(refused.retry_after)}
    return {}


def response_of(refused: Refused, *, public_url: str, path: str, request_id: str) -> Response:
    """Return the complete answer to a refused request."""
    body = body_of(refused, public_url=public_url, path=path, request_id=request_id)
    return Response(body, status_of(refused), headers_of(refused), media_type=MEDIA_TYPE)
