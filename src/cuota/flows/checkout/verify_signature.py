"""Verifies the signature of a merchant's request, in constant time, over the exact bytes."""

from __future__ import annotations

import hmac
import secrets
from uuid import UUID

from cuota.core.merchant import Merchant
from cuota.core.refusal import Code, Refused
from cuota.core.webhook.signature import pay_signature
from cuota.core.wire.signature_hint import explain
from cuota.db.checkout import sdk_checkouts
from cuota.db.checkout.sdk_checkouts import Signer
from cuota.db.row_security import narrow
from cuota.flows.context import Context, utc_now


async def verify_signature(
    context: Context, merchant_id: UUID, signed: bytes, signature: str | None
) -> Merchant:
    """Return the merchant whose signing secret made this signature. During a rotation the previous secret is valid too.

    Raises Refused(invalid_signature), both for an unknown merchant and for a wrong signature. In the sandbox the
    message says what was received.
    """
    found = await sdk_checkouts.read_signer(context.pool, merchant_id)
    keys = [secrets.token_urlsafe(32)] if found is None else _secrets(context, found)
    # Every secret is tried, so that the time taken does not reveal which one fits.
    given = (signature or "").encode()
    fits = [hmac.compare_digest(pay_signature(key, signed).encode(), given) for key in keys]
    if any(fits) and found is not None:
        narrow(merchant_id)
        return found.merchant
    message = "The signature does not verify. Sign the exact text that is sent, with the signing secret of this merchant."
    facts: dict[str, object] = {}
    if context.settings.sandbox:
        facts = explain(keys[0], signed, signature)
        message = f"The signature does not verify. {facts['hint']}"
    raise Refused(Code.INVALID_SIGNATURE, message, facts=facts)


def _secrets(context: Context, signer: Signer) -> list[str]:
    """Return the merchant's signing secret, and the previous one while it is valid."""
    bound_to = f"signing-secret:{signer.merchant.merchant_id}"
    held = [context.vault.decrypt(signer.secret, bound_to)]
    if signer.old_secret is not None and signer.old_ends_at is not None and utc_now() < signer.old_ends_at:
        held.append(context.vault.decrypt(signer.old_secret, bound_to))
    return held
