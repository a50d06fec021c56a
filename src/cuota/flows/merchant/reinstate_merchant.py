"""Reactivates a merchant whose credentials were revoked, with a new credential and new secrets."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from cuota.db.merchant import credentials
from cuota.flows.context import Context, utc_now
from cuota.flows.merchant.manage_merchants import BadMerchant, find_merchant, new_client
from cuota.flows.merchant.rotate_secrets import Renewed, renew_all


@dataclass(frozen=True, slots=True)
class Reinstated:
    """The new credential and secrets. They are shown only once."""

    client_id: str
    client_secret: str
    renewed: Renewed


async def reinstate_merchant(context: Context, name_or_id: str) -> Reinstated:
    """Create a new credential, and new signing, webhook and endpoint secrets, so that leaked ones are worthless.

    The credential is created last. If the command is interrupted before that, it can be run again. Raises BadMerchant if the
    merchant still has a live credential.
    """
    merchant = await find_merchant(context, name_or_id)
    held = await credentials.read_of_merchant(context.pool, merchant.merchant_id)
    if any(credential.revoked_at is None for credential in held):
        raise BadMerchant(
            f"{merchant.name} was not revoked: it has a live credential. For a new secret, run:"
            f" cuota merchant rotate-secret {shlex.quote(merchant.name)}"
        )
    renewed = await renew_all(context, merchant)
    client_id, secret = new_client()
    secret_hash = context.vault.hash("client-secret", secret)
    await credentials.add(context.pool, client_id, merchant.merchant_id, secret_hash, utc_now())
    return Reinstated(client_id, secret, renewed)
