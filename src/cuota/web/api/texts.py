"""`POST /texts`: what consumers answer to texts, handed in by the operator's text hook and signed as its own mail is."""

from __future__ import annotations

import hmac
import time
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cuota.core.consumer import is_us_number, typed_number
from cuota.core.refusal import Code, Refused
from cuota.core.webhook.signature import webhook_signature
from cuota.flows.checkout.answer_text import answer_text
from cuota.rails.unavailable import RailUnavailable
from cuota.web.body import parse_object, read_bytes, require_json
from cuota.web.service import service_of

MOST_SECONDS_OFF = 300
LONGEST_ID, LONGEST_TEXT = 200, 2000
_UNSIGNED = "The signature does not fit: sign `id.timestamp.body` with CUOTA_TEXT_HOOK_SECRET, as Standard Webhooks do."


async def texts(request: Request) -> Response:
    """`{"from": "+12125550187", "text": "STOP"}`; answers `{"understood": "stop"}`."""
    context = service_of(request).context
    senders = context.settings.senders
    if senders is None:
        raise Refused(Code.NOT_FOUND, "There is nothing at this path. The API is described at /docs.")
    require_json(request)
    body = await read_bytes(request)
    key, at = _signed(request, senders.hook_secret, body)
    given = parse_object(body)
    sender, text = given.get("from"), given.get("text")
    phone = typed_number(sender) if isinstance(sender, str) else ""
    if not is_us_number(phone) or not isinstance(text, str) or len(text) > LONGEST_TEXT:
        message = 'Send {"from": "+1" and ten digits, "text": what was written, at most 2,000 characters}.'
        raise Refused(Code.MALFORMED_REQUEST, message)
    try:
        answer = await answer_text(context, key, phone, text, at)
    except RailUnavailable:
        message = "The answer is noted; the reply cannot be sent now. Hand it in again."
        raise Refused(Code.UNAVAILABLE, message, retry_after=10) from None
    return JSONResponse({"understood": answer.value})


def _signed(request: Request, secret: str, body: bytes) -> tuple[str, datetime]:
    """The id and time of a message whose signature fits; raises Refused for every other."""
    key, stamp = (request.headers.get(f"webhook-{name}", "") for name in ("id", "timestamp"))
    given = request.headers.get("webhook-signature", "").split(" ")
    if not 1 <= len(key) <= LONGEST_ID or not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
        raise Refused(Code.INVALID_SIGNATURE, _UNSIGNED)
    right = webhook_signature([secret], key, int(stamp), body).encode()
    fits = [hmac.compare_digest(right, each.encode()) for each in given[:10]]
    if not any(fits) or abs(time.time() - int(stamp)) > MOST_SECONDS_OFF:
        raise Refused(Code.INVALID_SIGNATURE, _UNSIGNED)
    return key, datetime.fromtimestamp(int(stamp), UTC)
