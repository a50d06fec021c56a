"""`POST /texts`: receives the text messages that consumers send back, such as STOP.

The operator's text hook sends them here. It signs each request as Standard Webhooks do.
"""

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
_UNSIGNED = (
    "The signature is missing, wrong or too old. Sign `id.timestamp.body` with CUOTA_TEXT_HOOK_SECRET, as Standard "
    "Webhooks do."
)


async def texts(request: Request) -> Response:
    """Take `{"from": "+12125550187", "text": "STOP"}`, act on it, and answer `{"understood": "stop"}`."""
    context = service_of(request).context
    senders = context.settings.senders
    if senders is None:
        raise Refused(Code.NOT_FOUND, "There is nothing at this path. The API is described at /docs.")
    require_json(request)
    body = await read_bytes(request)
    key, at = _signed(request, senders.hook_secret, body)
    fields = parse_object(body)
    sender, text = fields.get("from"), fields.get("text")
    phone = typed_number(sender) if isinstance(sender, str) else ""
    if not is_us_number(phone) or not isinstance(text, str) or len(text) > LONGEST_TEXT:
        message = 'Send an object such as {"from": "+12125550187", "text": "STOP"}; text has at most 2,000 characters.'
        raise Refused(Code.MALFORMED_REQUEST, message)
    try:
        answer = await answer_text(context, key, phone, text, at)
    except RailUnavailable:
        message = "The message was recorded, but the reply to it cannot be sent now. Send the request again."
        raise Refused(Code.UNAVAILABLE, message, retry_after=10) from None
    return JSONResponse({"understood": answer.value})


def _signed(request: Request, secret: str, body: bytes) -> tuple[str, datetime]:
    """Verify the signature. Return the id and time of the message. Raises Refused(invalid_signature)."""
    key, stamp = (request.headers.get(f"webhook-{name}", "") for name in ("id", "timestamp"))
    signatures = request.headers.get("webhook-signature", "").split(" ")
    if not 1 <= len(key) <= LONGEST_ID or not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
        raise Refused(Code.INVALID_SIGNATURE, _UNSIGNED)
    expected = webhook_signature([secret], key, int(stamp), body).encode()
    matches = [hmac.compare_digest(expected, each.encode()) for each in signatures[:10]]
    if not any(matches) or abs(time.time() - int(stamp)) > MOST_SECONDS_OFF:
        raise Refused(Code.INVALID_SIGNATURE, _UNSIGNED)
    return key, datetime.fromtimestamp(int(stamp), UTC)
