"""What an operator can do with merchants: create, change, rotate client secrets, revoke."""

from __future__ import annotations

import base64
import secrets
import shlex
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import asyncpg

from cuota.core import money
from cuota.core.expected_failure import ExpectedFailure
from cuota.core.merchant import BodyProfile, Merchant, Onboarding
from cuota.core.shown_name import is_id
from cuota.db.merchant import credentials, merchants
from cuota.db.merchant.credentials import Credential
from cuota.db.payout import holds
from cuota.db.payout.holds import HoldReason
from cuota.db.session import Session
from cuota.flows.context import Context, new_token, utc_now
from cuota.flows.merchant.sandbox_account import give_test_account

LARGEST = 100_000_000_000


class BadMerchant(ExpectedFailure):
    """The operator's request cannot be carried out. The text says what to do."""


@dataclass(frozen=True, slots=True)
class MerchantTerms:
    """The terms of a merchant that an operator can set. Amounts are in cents; None leaves a value unchanged."""

    name: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    defer_funds_capture: bool | None = None
    profile: BodyProfile | None = None
    origins: tuple[str, ...] | None = None


def terms_words(of: Merchant | MerchantTerms) -> dict[str, object]:
    """Return the terms for the log. A term that is not given is None."""
    return {
        "name": of.name,
        "minimum": None if of.minimum is None else money.text_of(of.minimum),
        "maximum": None if of.maximum is None else money.text_of(of.maximum),
        "deferFundsCapture": of.defer_funds_capture,
        "profile": of.profile,
        "origins": of.origins,
    }


@dataclass(frozen=True, slots=True)
class NewCredentials:
    """Everything that a merchant's developer needs. The secrets are shown only once."""

    merchant: Merchant
    client_id: str
    client_secret: str
    audience: str
    signing_secret: str
    webhook_secret: str


def new_client() -> tuple[str, str]:
    """Return a new client id and its secret, which has 256 random bits."""
    return f"client_{secrets.token_hex(12)}", f"secret_{secrets.token_urlsafe(32)}"


def _name(text: str) -> str:
    """Return the name with single spaces, so that no two names differ only in their spaces. Raises BadMerchant."""
    name = " ".join(text.split())
    if not 1 <= len(name) <= 100 or not text.isprintable():
        raise BadMerchant("The name must have 1 to 100 printable characters.")
    if is_id(name):
        raise BadMerchant(
            f"{name} has the form of an id. Choose a name that cannot be confused with a merchant's id."
        )
    return name


def _with(merchant: Merchant, terms: MerchantTerms) -> Merchant:
    changes = {
        name: value
        for name in ("name", "minimum", "maximum", "defer_funds_capture", "profile", "origins")
        if (value := getattr(terms, name)) is not None
    }
    changed = replace(merchant, **changes)
    if terms.name is not None:
        changed = replace(changed, name=_name(terms.name))
    low, high = money.text_of(changed.minimum), money.text_of(changed.maximum)
    if changed.minimum > changed.maximum:
        raise BadMerchant(f"The minimum {low} is above the maximum {high}.")
    if not 0 < changed.minimum <= changed.maximum <= LARGEST:
        limit = money.text_of(LARGEST)
        raise BadMerchant(
            f"The minimum ({low}) must be positive and at most the maximum ({high}, at most {limit})."
        )
    return changed


async def create_merchant(context: Context, terms: MerchantTerms) -> NewCredentials:
    """Add a merchant with one credential. Raises BadMerchant if a term is not valid or the name is taken.

    If the settings require an approval, the merchant takes no real orders before that, and its payouts are held.
    """
    base = Merchant(
        merchant_id=new_token(),
        name="",
        minimum=100,
        maximum=200_000,
        defer_funds_capture=False,
        profile=BodyProfile.STRICT,
        currency=money.CURRENCY,
        origins=(),
        onboarding=Onboarding.OPEN if context.settings.onboarding_required else Onboarding.NONE,
    )
    merchant = _with(base, terms)
    bound = str(merchant.merchant_id)
    client_id, client_secret = new_client()
    new = NewCredentials(
        merchant=merchant,
        client_id=client_id,
        client_secret=client_secret,
        audience=context.settings.audience,
        signing_secret=f"signing_{secrets.token_urlsafe(32)}",
        webhook_secret=f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}",
    )
    try:
        async with context.pool.session() as session, session.transaction():
            await _require_free(session, merchant)
            await merchants.insert(
                session,
                merchant,
                signing_secret=context.vault.encrypt(new.signing_secret, f"signing-secret:{bound}"),
                webhook_secret=context.vault.encrypt(new.webhook_secret, f"webhook-secret:{bound}"),
                client_id=new.client_id,
                secret_hash=context.vault.hash("client-secret", new.client_secret),
                now=utc_now(),
            )
            if merchant.onboarding is Onboarding.OPEN:
                ids = merchant.merchant_id, HoldReason.UNAPPROVED
                await holds.hold(session, *ids, context.now(), on=True)
            if context.settings.sandbox:
                now, account_id = context.now(), context.new_id()
                await give_test_account(session, context.vault, merchant.merchant_id, account_id, now)
    except asyncpg.UniqueViolationError:
        raise _name_taken(merchant) from None
    return new


async def find_merchant(context: Context, name_or_id: str) -> Merchant:
    """Return the merchant with this name or id. Raises BadMerchant if there is none."""
    try:
        found = await merchants.read(context.pool, UUID(name_or_id))
    except ValueError:
        # A name contains printable characters only. The database may reject others, such as a zero byte.
        printable = name_or_id.isprintable()
        found = await merchants.read_by_name(context.pool, name_or_id) if printable else None
        single = " ".join(name_or_id.split())
        if found is None and printable and single != name_or_id:
            found = await merchants.read_by_name(context.pool, single)
    if found is None:
        raise BadMerchant(f"There is no merchant {name_or_id}. `cuota merchant list` shows all merchants.")
    return found


async def update_merchant(context: Context, name_or_id: str, terms: MerchantTerms) -> Merchant:
    """Change terms, for orders created from now on. Raises BadMerchant."""
    found = await find_merchant(context, name_or_id)
    if terms == MerchantTerms():
        raise BadMerchant("Nothing was changed. Give at least one option; see cuota merchant update --help.")
    try:
        async with context.pool.session() as session, session.transaction():
            # The merchant's own people may change the same row at this moment.
            held = await merchants.lock(session, found.merchant_id)
            held = held or found
            merchant = _with(held, terms)
            # A merchant of an earlier release, whose name differs from another only in its spaces, can change other terms.
            if merchant.name != held.name:
                await _require_free(session, merchant)
            await merchants.update(session, merchant)
    except asyncpg.UniqueViolationError:
        raise _name_taken(merchant) from None
    return merchant


async def _require_free(session: Session, merchant: Merchant) -> None:
    """Raise BadMerchant if another merchant has this name, or shows it to consumers."""
    if await merchants.is_taken(session, merchant.merchant_id, merchant.name):
        raise _name_taken(merchant)


def _name_taken(merchant: Merchant) -> BadMerchant:
    return BadMerchant(f"There is already a merchant named {merchant.name}. Choose another name.")


async def rotate_secret(
    context: Context, name_or_id: str, old_lives: timedelta, *, again: bool = False
) -> list[tuple[str, str]]:
    """Create a new client secret for each live credential. Return pairs of client id and secret.

    The old secret stays valid for `old_lives`. Raises BadMerchant if an earlier old secret is still valid, unless `again` is
    true: then the new secret replaces the last new one.
    """
    merchant, now = await find_merchant(context, name_or_id), utc_now()
    rotated = []
    for credential in await _live(context, merchant):
        _, secret = new_client()
        client_id, secret_hash = credential.client_id, context.vault.hash("client-secret", secret)
        if again:
            done = await credentials.rotate_again(context.pool, client_id, secret_hash, now) is not None
        else:
            done = await credentials.rotate(context.pool, client_id, secret_hash, now + old_lives, now)
        if done:
            rotated.append((client_id, secret))
    if not rotated:
        raise _none_old(merchant) if again else _still_rotating(merchant)
    return rotated


async def end_old_secret(context: Context, name_or_id: str) -> Merchant:
    """End the old client secret now. Raises BadMerchant if no old secret is valid."""
    merchant, now = await find_merchant(context, name_or_id), utc_now()
    ended = [
        await credentials.end_old(context.pool, each.client_id, now)
        for each in await _live(context, merchant)
    ]
    if not any(ended):
        raise _none_old(merchant)
    return merchant


def _still_rotating(merchant: Merchant) -> BadMerchant:
    return BadMerchant(
        f"Nothing was changed: the client secret of {merchant.name} was rotated before, and the old secret is still valid."
        " If the new secret was lost, add --again to replace it; the old secret then stays valid. To end the old secret now,"
        " add --end-old."
    )


def _none_old(merchant: Merchant) -> BadMerchant:
    return BadMerchant(f"Nothing was changed: {merchant.name} has no old client secret that is still valid.")


async def _live(context: Context, merchant: Merchant) -> list[Credential]:
    held = await credentials.read_of_merchant(context.pool, merchant.merchant_id)
    live = [each for each in held if each.revoked_at is None]
    if not live:
        raise BadMerchant(
            f"{merchant.name} was revoked and has no live credential. To create one, run: cuota merchant reinstate {shlex.quote(merchant.name)}"
        )
    return live


_REVOKED = "Nothing was changed: {} is revoked already."


async def require_live(context: Context, merchant: Merchant) -> None:
    """Raise BadMerchant if the merchant has no live credential."""
    held = await credentials.read_of_merchant(context.pool, merchant.merchant_id)
    if all(each.revoked_at is not None for each in held):
        raise BadMerchant(_REVOKED.format(merchant.name))


async def revoke_merchant(context: Context, name_or_id: str) -> int:
    """Revoke every credential of a merchant and return how many were live. Tokens stop working within seconds.

    Raises BadMerchant if the merchant has no live credential.
    """
    merchant = await find_merchant(context, name_or_id)
    async with context.pool.session() as session, session.transaction():
        # A credential that is being added right now is revoked too.
        await credentials.lock(session, merchant.merchant_id)
        revoked = await credentials.revoke(session, merchant.merchant_id, utc_now())
    if not revoked:
        raise BadMerchant(_REVOKED.format(merchant.name))
    return revoked
