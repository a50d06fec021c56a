"""Replaces a merchant's signing secret or webhook secret, or an endpoint's secret. The old secret stays valid for a while.

That time is measured by the real clock, in the sandbox too, so that moving the sandbox's clock ends no secret.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.merchant import Merchant
from cuota.db.merchant import secrets as merchant_secrets
from cuota.db.merchant.secrets import SecretKind
from cuota.db.webhook import endpoints
from cuota.flows.context import Context, utc_now
from cuota.flows.merchant.manage_merchants import BadMerchant, find_merchant
from cuota.flows.webhook import manage_endpoints


@dataclass(frozen=True, slots=True)
class Rotated:
    """The new secret, which is shown only once, and when the old secret ends; None if it has ended already."""

    merchant: Merchant
    secret: str
    old_ends_at: datetime | None


def new_signing_secret() -> str:
    """Return a new signing secret with 256 random bits."""
    return f"signing_{secrets.token_urlsafe(32)}"


def new_webhook_secret() -> str:
    """Return a new webhook secret with 256 random bits, in the format of Standard Webhooks."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


_NEW = {SecretKind.SIGNING: new_signing_secret, SecretKind.WEBHOOK: new_webhook_secret}


async def rotate_merchant_secret(
    context: Context, name_or_id: str, kind: SecretKind, old_lives: timedelta, *, again: bool = False
) -> Rotated:
    """Create a new secret; the old one stays valid for `old_lives`.

    Raises BadMerchant if an earlier old secret is still valid, unless `again` is true: then the new secret replaces the last
    new one.
    """
    merchant = await find_merchant(context, name_or_id)
    merchant_id, now = merchant.merchant_id, utc_now()
    secret = _NEW[kind]()
    sealed = context.vault.encrypt(secret, f"{kind}-secret:{merchant_id}")
    if again:
        ends_at = await merchant_secrets.rotate_again(context.pool, merchant_id, kind, sealed, now)
        if ends_at is None:
            raise _none_old(merchant, kind)
        return Rotated(merchant, secret, ends_at)
    if not await merchant_secrets.rotate(context.pool, merchant_id, kind, sealed, now + old_lives, now):
        there = await merchant_secrets.old_ends_at(context.pool, merchant_id, kind)
        raise _still_rotating(merchant, kind, there or now)
    return Rotated(merchant, secret, now + old_lives if old_lives else None)


async def end_old_secret(context: Context, name_or_id: str, kind: SecretKind) -> Merchant:
    """End the old secret now. Raises BadMerchant if no old secret is valid."""
    merchant = await find_merchant(context, name_or_id)
    if not await merchant_secrets.end_old(context.pool, merchant.merchant_id, kind, utc_now()):
        raise _none_old(merchant, kind)
    return merchant


async def rotate_endpoint_secret(
    context: Context, name_or_id: str, endpoint: str, old_lives: timedelta, *, again: bool = False
) -> Rotated:
    """Do the same as `rotate_merchant_secret` for one of the merchant's registered webhook endpoints."""
    merchant, endpoint_id = await _endpoint_of(context, name_or_id, endpoint)
    try:
        made, secret = await manage_endpoints.rotate(
            context, merchant.merchant_id, endpoint_id, old_lives, again=again, once=bool(old_lives)
        )
    except manage_endpoints.OldSecretWorks as works:
        raise _still_rotating(merchant, SecretKind.WEBHOOK, works.ends_at) from None
    except manage_endpoints.NoOldSecret:
        raise _none_old(merchant, SecretKind.WEBHOOK) from None
    return Rotated(merchant, secret, manage_endpoints.old_secret_ends_at(made))


async def end_old_endpoint_secret(context: Context, name_or_id: str, endpoint: str) -> Merchant:
    """End the endpoint's old secret now. Raises BadMerchant if no old secret is valid."""
    merchant, endpoint_id = await _endpoint_of(context, name_or_id, endpoint)
    try:
        await manage_endpoints.end_old(context, merchant.merchant_id, endpoint_id)
    except manage_endpoints.NoOldSecret:
        raise _none_old(merchant, SecretKind.WEBHOOK) from None
    return merchant


@dataclass(frozen=True, slots=True)
class Renewed:
    """All new secrets of a merchant. `endpoints` are tuples of id, url and secret."""

    signing_secret: str
    webhook_secret: str
    endpoints: list[tuple[UUID, str, str]]


async def renew_all(context: Context, merchant: Merchant) -> Renewed:
    """Replace all secrets of a merchant at once. The old secrets are no longer valid."""
    now = utc_now()
    fresh: dict[SecretKind, str] = {}
    for kind, new in _NEW.items():
        fresh[kind] = new()
        sealed = context.vault.encrypt(fresh[kind], f"{kind}-secret:{merchant.merchant_id}")
        await merchant_secrets.rotate(context.pool, merchant.merchant_id, kind, sealed, now, now)
    renewed = []
    for held in await endpoints.read_all(context.pool, merchant.merchant_id):
        _, secret = await manage_endpoints.rotate(
            context, merchant.merchant_id, held.endpoint_id, timedelta(0)
        )
        renewed.append((held.endpoint_id, held.url, secret))
    return Renewed(fresh[SecretKind.SIGNING], fresh[SecretKind.WEBHOOK], renewed)


async def _endpoint_of(context: Context, name_or_id: str, endpoint: str) -> tuple[Merchant, UUID]:
    merchant = await find_merchant(context, name_or_id)
    held = await endpoints.read_all(context.pool, merchant.merchant_id)
    for each in held:
        if endpoint.lower() in {str(each.endpoint_id), each.endpoint_id.hex} or endpoint == each.url:
            return merchant, each.endpoint_id
    listed = ", ".join(f"{each.endpoint_id} ({each.url})" for each in held)
    there = (
        f"Its endpoints are: {listed}."
        if listed
        else "It has no endpoints. Leave out ENDPOINT for its own webhook secret."
    )
    raise BadMerchant(f"{merchant.name} has no webhook endpoint {endpoint}. {there}")


def _still_rotating(merchant: Merchant, kind: SecretKind, ends_at: datetime) -> BadMerchant:
    return BadMerchant(
        f"Nothing was changed: the {kind} secret of {merchant.name} was rotated before, and the old secret is valid until"
        f" {ends_at:%Y-%m-%d %H:%M} UTC. If the new secret was lost, add --again to replace it; the old secret then stays valid."
        " To end the old secret now, add --end-old."
    )


def _none_old(merchant: Merchant, kind: SecretKind) -> BadMerchant:
    return BadMerchant(f"Nothing was changed: {merchant.name} has no old {kind} secret that is still valid.")
