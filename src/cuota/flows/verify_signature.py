"""Who signed: the merchant of a signed request, checked in constant time over the exact bytes."""

from __future__ import annotations

import hmac
import secrets
from uuid import UUID

from cuota.core.merchant import Merchant
from cuota.core.refusal import Code, Refused
from cuota.core.signature import pay_signature
from cuota.core.signature_hint import explain
from cuota.db import sdk_checkouts
from cuota.flows.context import Context


async def verify_signature(
    context: Context, merchant_id: UUID, signed: bytes, signature: str | None
) -> Merchant:
    """The merchant whose signing secret made this signature.

    Raises Refused(invalid_signature), for an unknown merchant just as for a wrong signature; in the sandbox it says
    what was received.
    """
    found = await sdk_checkouts.read_signer(context.pool, merchant_id)
    if found is None:
        secret = secrets.token_urlsafe(32)
    else:
        secret = context.vault.decrypt(found[1], f"signing-secret:{merchant_id}")
    expected = pay_signature(secret, signed)
    good = hmac.compare_digest(expected.encode(), (signature or "").encode())
    if good and found is not None:
        return found[0]
    message = "The signature does not verify. Sign the exact text that is sent, with the signing secret of this merchant."
    facts: dict[str, object] = {}
    if context.settings.sandbox:
        facts = explain(secret, signed, signature)
        message = f"The signature does not verify. {facts['hint']}"
    raise Refused(Code.INVALID_SIGNATURE, message, facts=facts)
