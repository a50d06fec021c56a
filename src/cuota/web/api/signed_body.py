"""A JSON body that a merchant signed: first its signature, and only then what it says."""

from __future__ import annotations

from typing import Any

from cuota.core.merchant import Merchant
from cuota.core.order.event import is_event_body
from cuota.core.refusal import Code, Refused
from cuota.core.wire.json_member import find_text
from cuota.core.wire.strict_json import BadJson
from cuota.flows.checkout.verify_signature import verify_signature
from cuota.flows.context import Context
from cuota.web.api.sdk_body import merchant_id_of
from cuota.web.body import parse_object
from cuota.web.free_text import without_cards


async def verified_body(
    context: Context, signed: bytes, signature: str | None
) -> tuple[Merchant, dict[str, Any]]:
    """Who signed these bytes, and the object that they are.

    Raises Refused: invalid_signature before anything but `merchantId` was read, malformed_request after it.
    """
    try:
        named = find_text(signed, "merchantId")
    except BadJson as problem:
        raise Refused(Code.MALFORMED_REQUEST, f"The body is not readable as JSON: {problem}.") from None
    merchant = await verify_signature(context, merchant_id_of({"merchantId": named}), signed, signature)
    body = parse_object(signed, "additionalData")
    if is_event_body(body):
        # Webhooks carry this header too, over their own body: whoever receives one could send it here.
        message = "This is the body of a webhook. Its signature opens no checkout."
        raise Refused(Code.INVALID_SIGNATURE, message)
    return merchant, without_cards(body, signed)
