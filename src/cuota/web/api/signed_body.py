"""Reads a JSON body that a merchant signed. The signature is verified before the body is parsed."""

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
    """Verify the signature of a body. Return the merchant that signed it, and its JSON object.

    Raises Refused: invalid_signature after only `merchantId` was read, malformed_request if the body cannot be parsed.
    """
    try:
        merchant_id = find_text(signed, "merchantId")
    except BadJson as problem:
        raise Refused(Code.MALFORMED_REQUEST, f"The body is not readable as JSON: {problem}.") from None
    merchant = await verify_signature(context, merchant_id_of({"merchantId": merchant_id}), signed, signature)
    body = parse_object(signed, "additionalData")
    if is_event_body(body):
        # A webhook is signed with the same key and header. Its receiver could send its body here.
        message = "This is the body of a webhook. Its signature cannot start a checkout."
        raise Refused(Code.INVALID_SIGNATURE, message)
    return merchant, without_cards(body, signed)
