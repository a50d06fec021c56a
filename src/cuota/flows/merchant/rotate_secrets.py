"""A merchant's signing secret, webhook secret or an endpoint's is replaced: the old one works for a day beside it.

The day is one of real time, in the sandbox too, as for every secret: moving the sandbox's clock locks nobody out.
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
    """The new secret, shown this once, and until when the old one works; None where it does not any more."""

    merchant: Merchant
    secret: str
    old_ends_at: datetime | None


def new_signing_secret() -> str:
    """256 bits."""
    return f"signing_{secrets.token_urlsafe(32)}"


def new_webhook_secret() -> str:
    """256 bits, as Standard Webhooks writes them."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


_NEW = {SecretKind.SIGNING: new_signing_secret, SecretKind.WEBHOOK: new_webhook_secret}


async def rotate_merchant_secret(
    context: Context, name_or_id: str, kind: SecretKind, old_lives: timedelta, *, again: bool = False
) -> Rotated:
    """A new secret; raises BadMerchant while an older one lives, unless `again` replaces the new one of that time."""
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
    """The old secret works no more, from now on; raises BadMerchant where there is none."""
    merchant = await find_merchant(context, name_or_id)
    if not await merchant_secrets.end_old(context.pool, merchant.merchant_id, kind, utc_now()):
        raise _none_old(merchant, kind)
    return merchant


async def rotate_endpoint_secret(
    context: Context, name_or_id: str, endpoint: str, old_lives: timedelta, *, again: bool = False
) -> Rotated:
    """The same for one of the merchant's registered webhook endpoints."""
    merchant, endpoint_id = await _endpoint_of(context, name_or_id, endpoint)
    found = await manage_endpoints.find(context, merchant.merchant_id, endpoint_id)
    now = utc_now()
    ends_at = found.old_secret_ends_at if found.old_secret is not None else None
    lives = ends_at is not None and ends_at > now
    if again and not lives:
        raise _none_old(merchant, SecretKind.WEBHOOK)
    if ends_at is not None and lives and old_lives and not again:
        raise _still_rotating(merchant, SecretKind.WEBHOOK, ends_at)
    made, secret = await manage_endpoints.rotate(
        context, merchant.merchant_id, endpoint_id, old_lives, again=again
    )
    left = made.old_secret_ends_at
    return Rotated(merchant, secret, left if left is not None and left > now else None)


async def end_old_endpoint_secret(context: Context, name_or_id: str, endpoint: str) -> Merchant:
    """The endpoint's old secret works no more, from now on; raises BadMerchant where there is none."""
    merchant, endpoint_id = await _endpoint_of(context, name_or_id, endpoint)
    if not await endpoints.end_old_secret(context.pool, merchant.merchant_id, endpoint_id, utc_now()):
        raise _none_old(merchant, SecretKind.WEBHOOK)
    return merchant


@dataclass(frozen=True, slots=True)
class Renewed:
    """All new secrets of a merchant; `endpoints` are (id, url, secret)."""

    signing_secret: str
    webhook_secret: str
    endpoints: list[tuple[UUID, str, str]]


async def renew_all(context: Context, merchant: Merchant) -> Renewed:
    """New secrets everywhere at once: the old ones are worthless from here on."""
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
        f"There are: {listed}." if listed else "It has none; leave ENDPOINT out for its own webhook secret."
    )
    raise BadMerchant(f"{merchant.name} has no webhook endpoint {endpoint}. {there}")


def _still_rotating(merchant: Merchant, kind: SecretKind, ends_at: datetime) -> BadMerchant:
    return BadMerchant(
        f"The {kind} secret of {merchant.name} was rotated already, and the old one works until"
        f" {ends_at:%Y-%m-%d %H:%M} UTC. Nothing was changed. If the new secret got lost, add --again: it replaces that"
        " one, and the old one goes on working. To end the old one now, add --end-old."
    )


def _none_old(merchant: Merchant, kind: SecretKind) -> BadMerchant:
    return BadMerchant(f"No old {kind} secret of {merchant.name} works any more; nothing was changed.")
