"""What a merchant does with its own credentials: add one with a scope, replace its secret, revoke it."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from cuota.core.credential import Scope
from cuota.db.merchant import credentials
from cuota.db.merchant.credentials import Credential
from cuota.db.session import Session
from cuota.flows.context import Context, utc_now
from cuota.flows.merchant.manage_merchants import BadMerchant, new_client

MOST_CREDENTIALS = 20
# Revoked credentials stay in the table, because the request log and the audit log name them.
MOST_ADDED = 50
ADDED_WITHIN = timedelta(hours=24)
LONGEST_NAME = 100
# The old secret keeps working for this long after it was replaced, so that no call fails during the change.
OLD_SECRET_LIVES = timedelta(hours=24)
TWO_WORK = (
    "The secret was already replaced, and the old secret still works. If the new secret was lost, replace the lost secret."
    " Otherwise end the old one first: at most two secrets work at a time."
)
NONE_OLD = "Only one secret works. Nothing was changed."
LAST = (
    "This is the last credential that may do everything. Add another first, and then revoke this one: that also ends the tokens"
    " that were made with it."
)
GONE = "This credential was revoked meanwhile. Nothing was changed."


async def live_credentials(context: Context, merchant_id: UUID) -> list[Credential]:
    """Return the credentials in force, the oldest first."""
    return await _live(context.pool, merchant_id)


async def _live(session: Session, merchant_id: UUID) -> list[Credential]:
    return _in_force(await credentials.read_of_merchant(session, merchant_id))


def _in_force(held: list[Credential]) -> list[Credential]:
    return [each for each in held if each.revoked_at is None]


async def find_credential(context: Context, merchant_id: UUID, client_id: str) -> Credential:
    """Return one credential in force. Raises BadMerchant."""
    for each in await live_credentials(context, merchant_id):
        if each.client_id == client_id:
            return each
    raise BadMerchant(GONE)


def read_credential_name(typed: str) -> str:
    """Return the name of a new credential. Raises BadMerchant."""
    name = " ".join(typed.split())
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise BadMerchant(f"Enter a name with 1 to {LONGEST_NAME} characters, such as: warehouse.")
    return name


async def add_credential(context: Context, merchant_id: UUID, name: str, scope: Scope) -> tuple[str, str]:
    """Add a credential. Return its client id and secret, which is never shown again. Raises BadMerchant.

    Two credentials in force have different names, so that a second click adds nothing.
    """
    client_id, secret = new_client()
    secret_hash = context.vault.hash("client-secret", secret)
    async with context.pool.session() as session, session.transaction():
        await credentials.lock(session, merchant_id)
        held = await credentials.read_of_merchant(session, merchant_id)
        live = _in_force(held)
        if not live:
            raise BadMerchant(
                "Your payment provider revoked your credentials. Ask your provider for new ones."
            )
        if len(live) >= MOST_CREDENTIALS:
            raise BadMerchant(f"There are {MOST_CREDENTIALS} credentials already. Revoke one first.")
        if sum(each.created_at > utc_now() - ADDED_WITHIN for each in held) >= MOST_ADDED:
            raise BadMerchant(
                f"{MOST_ADDED} credentials were added in the last 24 hours, with the revoked ones. Replace the secret of one instead."
            )
        if any(each.name == name for each in live):
            raise BadMerchant(
                f"There is a credential named {name} already. If you have just added it and did not see its secret, replace its"
                " secret. Otherwise choose another name."
            )
        await credentials.add(session, client_id, merchant_id, secret_hash, utc_now(), name, scope)
    return client_id, secret


async def replace_secret(context: Context, credential: Credential) -> str:
    """Create a new client secret and return it; the old one works for 24 more hours. Raises BadMerchant."""
    now = utc_now()
    _, secret = new_client()
    hashed = context.vault.hash("client-secret", secret)
    if not await credentials.rotate(context.pool, credential.client_id, hashed, now + OLD_SECRET_LIVES, now):
        raise BadMerchant(TWO_WORK)
    return secret


async def replace_lost(context: Context, credential: Credential) -> str:
    """Replace a new secret that was lost, and return another. The old secret works as before. Raises BadMerchant."""
    _, secret = new_client()
    hashed = context.vault.hash("client-secret", secret)
    if await credentials.rotate_again(context.pool, credential.client_id, hashed, utc_now()) is None:
        raise BadMerchant(NONE_OLD)
    return secret


async def end_old(context: Context, credential: Credential) -> None:
    """End the old secret now. Raises BadMerchant if none works."""
    if not await credentials.end_old(context.pool, credential.client_id, utc_now()):
        raise BadMerchant(NONE_OLD)


async def revoke_credential(context: Context, credential: Credential) -> None:
    """Revoke one credential: its tokens stop working within seconds. Raises BadMerchant for the last credential with full scope."""
    async with context.pool.session() as session, session.transaction():
        await credentials.lock(session, credential.merchant_id)
        live = await _live(session, credential.merchant_id)
        if credential.scope is Scope.FULL and sum(each.scope is Scope.FULL for each in live) == 1:
            raise BadMerchant(LAST)
        if not await credentials.revoke_one(session, credential.merchant_id, credential.client_id, utc_now()):
            raise BadMerchant(GONE)
