"""CUOTA_SECRET_KEY can be replaced while the service runs, and all issued secrets and ids stay valid."""

from __future__ import annotations

import hmac
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import asyncpg
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cuota import config
from cuota.commands.keys import _rewrap
from cuota.core.payout.bank_order import Originator
from cuota.core.webhook.signature import pay_signature
from cuota.db.merchant import secrets as merchant_secrets
from cuota.db.merchant.secrets import SecretKind
from cuota.db.sealed import HASHED, SEALED
from cuota.db.vault import Vault, WrongKey
from cuota.flows.checkout.verify_signature import verify_signature
from cuota.flows.context import Context, utc_now
from cuota.flows.merchant.issue_token import TokenRequest, issue_token
from cuota.flows.merchant.keys import Keys, _made, rotate_keys
from cuota.flows.merchant.manage_merchants import NewCredentials
from cuota.flows.merchant.rotate_secrets import rotate_merchant_secret
from cuota.flows.sandbox import fork_sandbox
from cuota.flows.secret.rewrap_secrets import Rewrapped, rewrap
from cuota.flows.webhook.manage_endpoints import OLD_SECRET_LIVES
from cuota.rails.bank.file_books import FileBooks
from cuota.run import runtime
from support.flows.sealed_values import filled

PHONE = "2125550142"


@pytest.fixture
def old(settings: config.Settings) -> config.Settings:
    return settings


@pytest.fixture
def both(settings: config.Settings) -> config.Settings:
    """Settings with a new key, which can still read the old key's secrets."""
    return replace(settings, secret_key=os.urandom(32), old_secret_keys=(settings.secret_key,))


@asynccontextmanager
async def opened(settings: config.Settings, where: dict[str, Any]) -> AsyncIterator[Context]:
    async with runtime.opened(settings, where, pool_size=2, decides=False) as context:
        yield context


async def everything(context: Context, *, said: list[str] | None = None) -> Rewrapped:
    def tell(column: str, seen: int, held: int) -> None:
        assert seen <= held
        if said is not None:
            said.append(column)

    return await rewrap(context.pool, context.vault, [(context.pool, place) for place in SEALED], tell)


async def works(context: Context, made: NewCredentials) -> None:
    """Check that all values issued under the first key still work: client secret, signing secret, consumer id, issued card."""
    keys = Keys(context)
    asked = TokenRequest(made.client_id, made.client_secret, context.settings.audience)
    assert (await issue_token(context, keys, asked)).access_token
    signature = pay_signature(made.signing_secret, b"body")
    signer = await verify_signature(context, made.merchant.merchant_id, b"body", signature)
    assert signer.merchant_id == made.merchant.merchant_id
    books = FileBooks(context.pool, context.vault, Originator("C", "1", "B", "011000015", "1234"))
    assert "123456789" in (await books.content(1) or "")
    for row in await context.pool.fetch("SELECT key FROM issuing_simulator.cards"):
        assert await context.rails.issuing.reveal(row["key"]) is not None


async def test_everything_is_encrypted_with_the_new_key_and_still_works_without_the_old_one(
    old: config.Settings, both: config.Settings, own_database: dict[str, Any]
) -> None:
    async with opened(old, own_database) as context:
        made = await filled(context)
        consumer = context.vault.consumer_id(PHONE)
    async with opened(both, own_database) as context:
        await works(context, made)
        said: list[str] = []
        found = await everything(context, said=said)
        assert (found.done, found.rewrapped, found.left) == (True, 30, 0)
        assert set(said) == {f"{place.table}.{place.column}" for place in SEALED}
        again = await everything(context)
        assert (again.done, again.rewrapped) == (True, 0)
    async with opened(replace(both, old_secret_keys=()), own_database) as context:
        await works(context, made)
        assert context.vault.consumer_id(PHONE) == consumer
    with pytest.raises(WrongKey, match="CUOTA_SECRET_KEY_OLD"):
        async with opened(old, own_database):
            pass


async def test_an_installation_of_an_earlier_release_keeps_its_ids_and_hashes(
    old: config.Settings, both: config.Settings, own_database: dict[str, Any]
) -> None:
    """That installation has encrypted texts without a key id, and hashes made with the secret key itself."""
    nonce, key_id = os.urandom(12), "20260101-0a0b0c0d"
    cipher = AESGCM(hmac.digest(old.secret_key, b"cuota:encryption", "sha256"))
    pem = _made(key_id, "RS256").as_pem(private=True)
    sealed = nonce + cipher.encrypt(nonce, pem, f"signing-key:{key_id}".encode())
    await ask(
        own_database,
        "INSERT INTO signing_keys (key_id, private_key, active_at) VALUES ($1, $2, now())",
        key_id,
        sealed,
    )
    before = Vault(old.secret_key)
    # Upgrading and rotating in one step has the same result as one after the other.
    for settings in (both, replace(both, old_secret_keys=())):
        async with opened(settings, own_database) as context:
            assert context.vault.consumer_id(PHONE) == before.consumer_id(PHONE)
            assert context.vault.hash("client-secret", "x") == before.hash("client-secret", "x")
            assert (await everything(context)).done


async def test_a_new_installation_has_a_hash_key_that_is_independent_of_the_secret_key(
    old: config.Settings, own_database: dict[str, Any]
) -> None:
    async with opened(old, own_database) as context, opened(old, own_database) as second:
        assert context.vault.consumer_id(PHONE) == second.vault.consumer_id(PHONE)
        assert context.vault.consumer_id(PHONE) != Vault(old.secret_key).consumer_id(PHONE)


class Killed(BaseException):
    """The death of the process, which no code can handle."""


class Dying:
    """A database session that simulates the death of its process at the n-th write."""

    def __init__(self, session: Any, writes: int) -> None:
        self._session, self._writes = session, writes

    async def fetchrow(self, sql: str, *values: object) -> Any:
        return await self._session.fetchrow(sql, *values)

    async def fetch(self, sql: str, *values: object) -> Any:
        if sql.startswith("UPDATE"):
            if not self._writes:
                raise Killed
            self._writes -= 1
        return await self._session.fetch(sql, *values)


@pytest.mark.parametrize("writes", [0, 1, 4, 8])
async def test_a_killed_rewrap_can_be_repeated_and_skips_the_finished_rows(
    old: config.Settings, both: config.Settings, own_database: dict[str, Any], writes: int
) -> None:
    async with opened(old, own_database) as context:
        made = await filled(context)
    async with opened(both, own_database) as context:
        dying = Dying(context.pool, writes)
        with pytest.raises(Killed):
            await rewrap(dying, context.vault, [(dying, place) for place in SEALED], lambda *_: None)
        await works(context, made)
        found = await everything(context)
        assert (found.done, found.rewrapped) == (True, 30 - writes)
        await works(context, made)


@pytest.mark.parametrize("writes", [1, 8, 20, 28])
async def test_without_the_old_key_nothing_starts_on_a_database_that_a_killed_rewrap_left_half_done(
    old: config.Settings, both: config.Settings, own_database: dict[str, Any], writes: int
) -> None:
    async with opened(old, own_database) as context:
        await filled(context)
    async with opened(both, own_database) as context:
        dying = Dying(context.pool, writes)
        with pytest.raises(Killed):
            await rewrap(dying, context.vault, [(dying, place) for place in SEALED], lambda *_: None)
    with pytest.raises(WrongKey, match="CUOTA_SECRET_KEY_OLD"):
        async with opened(replace(both, old_secret_keys=()), own_database):
            pass


class Meanwhile(Dying):
    """A session that rotates a secret after each page of rows was read and before the page is written."""

    def __init__(self, session: Any, context: Context) -> None:
        super().__init__(session, 1000)
        self._context, self.secret = context, ""

    async def fetch(self, sql: str, *values: object) -> Any:
        if sql.startswith("UPDATE public.merchants") and not self.secret:
            self.secret = (
                await rotate_merchant_secret(
                    self._context, "Shop", SecretKind.SIGNING, OLD_SECRET_LIVES, again=True
                )
            ).secret
        return await super().fetch(sql, *values)


async def test_a_rewrap_does_not_overwrite_a_secret_that_was_rotated_meanwhile(
    old: config.Settings, both: config.Settings, own_database: dict[str, Any]
) -> None:
    async with opened(old, own_database) as context:
        made = await filled(context)
    async with opened(both, own_database) as context:
        behind = Meanwhile(context.pool, context)
        found = await rewrap(behind, context.vault, [(behind, place) for place in SEALED], lambda *_: None)
        assert found.done
        signature = pay_signature(behind.secret, b"body")
        assert await verify_signature(context, made.merchant.merchant_id, b"body", signature)


async def test_while_another_process_uses_another_key_the_rewrap_changes_nothing(
    old: config.Settings, both: config.Settings, own_database: dict[str, Any]
) -> None:
    reads_both = replace(old, old_secret_keys=(both.secret_key,))
    async with opened(reads_both, own_database) as beside, opened(both, own_database) as context:
        made = await filled(beside)
        await works(beside, made)
        found = await everything(context)
        assert not found.done
        assert found.others == {f"cuota key {beside.vault.key_id}": 1}
        assert found.rewrapped == 0
        # Each process reads what the other wrote, so machines can get the new key one after the other.
        await works(beside, made)
        await rotate_keys(context, at_once=True)
        await works(beside, made)


async def test_a_secret_that_no_key_can_decrypt_is_named_and_the_others_are_rewrapped(
    old: config.Settings, both: config.Settings, own_database: dict[str, Any]
) -> None:
    async with opened(old, own_database) as context:
        made = await filled(context)
    merchant_id = made.merchant.merchant_id
    async with opened(both, own_database) as context:
        lost = Vault(os.urandom(32)).encrypt("x", f"webhook-secret:{merchant_id}")
        await merchant_secrets.rotate_again(context.pool, merchant_id, SecretKind.WEBHOOK, lost, utc_now())
        found = await everything(context)
    assert found.unreadable == [f"public.merchants.webhook_secret {merchant_id}"]
    assert (found.done, found.rewrapped) == (False, 29)


async def test_copies_of_the_sandbox_are_rewrapped_too(
    old: config.Settings, both: config.Settings, own_database: dict[str, Any]
) -> None:
    async with opened(old, own_database) as context:
        made = await filled(context)
    await fork_sandbox.fork(own_database, "before")
    found = await _rewrap(both, own_database)
    assert (found.done, found.rewrapped) == (True, 57)
    await fork_sandbox.rewind(own_database, "before")
    async with opened(replace(both, old_secret_keys=()), own_database) as context:
        await works(context, made)
        assert (await everything(context)).rewrapped == 0


async def test_every_bytea_column_is_listed_as_encrypted_or_not(own_database: dict[str, Any]) -> None:
    """Add a new column to db/sealed.py: to SEALED if the secret key encrypts it, otherwise to HASHED."""
    sql = """SELECT array_agg(table_schema || '.' || table_name || '.' || column_name) FROM information_schema.columns
        WHERE data_type = 'bytea' AND table_schema NOT IN ('pg_catalog', 'information_schema')"""
    there = set(await ask(own_database, sql))
    sealed = {f"{place.table}.{place.column}" for place in SEALED}
    assert there == sealed | HASHED
    assert not sealed & HASHED


async def ask(where: dict[str, Any], sql: str, *values: object) -> Any:
    connection = await asyncpg.connect(**where)
    try:
        return await connection.fetchval(sql, *values)
    finally:
        await connection.close()
