"""Access tokens are signed with P-256 keys. RSA keys of earlier releases verify until their last token has expired."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from joserfc import jws

from cuota import config
from cuota.flows.context import Context, utc_now
from cuota.flows.merchant import manage_merchants
from cuota.flows.merchant.authenticate import Callers
from cuota.flows.merchant.issue_token import TokenRequest, issue_token
from cuota.flows.merchant.keys import NOTICE, TOKEN_LIFE, UPGRADE, Keys, ensure_key, rotate_keys
from cuota.run import runtime
from support.makers import Merchant


@pytest.fixture
async def upgraded(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Context]:
    """Yield a database of an earlier release: its only signing key is an RSA key."""
    async with runtime.opened(settings, own_database, pool_size=4) as context:
        await rotate_keys(context, at_once=True, algorithm="RS256")
        owner = await asyncpg.connect(**own_database)
        await owner.execute("DELETE FROM signing_keys_p256")
        await owner.execute("UPDATE signing_keys SET active_at = active_at - interval '1 day'")
        await owner.close()
        yield context


async def algorithms(context: Context) -> list[tuple[str, Any]]:
    """Return the algorithm of each published key, and when the key is retired."""
    keys = Keys(context)
    await keys.load()
    return [(stored.algorithm, stored.retired_at) for stored, _ in keys._stored]


async def signs_with(context: Context, after: timedelta) -> str | None:
    """Return the algorithm of a token that is issued after this time."""
    keys = Keys(context)
    await keys.load()
    return keys.signer(utc_now() + after).alg


async def issued(context: Context, name: str = "Shop") -> str:
    new = await manage_merchants.create_merchant(context, manage_merchants.MerchantTerms(name=name))
    asked = TokenRequest(new.client_id, new.client_secret, new.audience)
    return (await issue_token(context, Keys(context), asked)).access_token


def header_of(token: str) -> dict[str, Any]:
    return dict(jws.extract_compact(token.encode()).headers())


async def test_a_new_installation_signs_with_p_256_at_once(merchant: Merchant) -> None:
    header = header_of(merchant.http.headers["authorization"].removeprefix("Bearer "))
    assert {name: header[name] for name in ("alg", "typ")} == {"alg": "ES256", "typ": "at+jwt"}
    assert set(header) == {"alg", "typ", "kid"}


async def test_after_an_upgrade_the_p256_key_is_published_a_day_before_it_signs(upgraded: Context) -> None:
    await ensure_key(upgraded)
    assert [each for each, _ in await algorithms(upgraded)] == ["RS256", "ES256"]
    assert header_of(await issued(upgraded))["alg"] == "RS256"
    assert await signs_with(upgraded, UPGRADE - timedelta(minutes=1)) == "RS256"
    assert await signs_with(upgraded, UPGRADE) == "ES256"


async def test_the_rsa_key_verifies_until_its_last_token_has_expired(upgraded: Context) -> None:
    old = await issued(upgraded)
    await ensure_key(upgraded)
    assert await Callers(upgraded, Keys(upgraded)).caller(f"Bearer {old}")
    [(_, retired_at), _] = await algorithms(upgraded)
    assert retired_at > utc_now() + UPGRADE + TOKEN_LIFE
    # A day later the P-256 key signs; the RSA key still verifies.
    for table in ("signing_keys", "signing_keys_p256"):
        await upgraded.pool.execute(
            f"UPDATE {table} SET active_at = active_at - $1::interval, retired_at = retired_at - $1::interval",
            UPGRADE,
        )
    new = await issued(upgraded, "Another shop")
    assert header_of(new)["alg"] == "ES256"
    callers = Callers(upgraded, Keys(upgraded))
    assert await callers.caller(f"Bearer {old}")
    assert await callers.caller(f"Bearer {new}")


async def test_a_second_start_adds_no_second_p256_key(upgraded: Context) -> None:
    await ensure_key(upgraded)
    once = await algorithms(upgraded)
    await ensure_key(upgraded)
    assert await algorithms(upgraded) == once


async def test_the_previous_release_finds_only_rsa_keys_where_it_looks(upgraded: Context) -> None:
    await ensure_key(upgraded)
    await rotate_keys(upgraded)
    rows = await upgraded.pool.fetch("SELECT key_id, private_key FROM signing_keys")
    pems = [upgraded.vault.decrypt(row["private_key"], f"signing-key:{row['key_id']}") for row in rows]
    assert len(pems) == 1
    assert isinstance(load_pem_private_key(pems[0].encode(), None), RSAPrivateKey)


async def test_an_operator_can_sign_with_rsa_again(upgraded: Context) -> None:
    await ensure_key(upgraded)
    added = await rotate_keys(upgraded, algorithm="RS256", notice=UPGRADE + NOTICE)
    assert await signs_with(upgraded, UPGRADE) == "ES256"
    assert await signs_with(upgraded, UPGRADE + NOTICE) == "RS256"
    # The choice stays: the next start adds no P-256 key.
    await upgraded.pool.execute("UPDATE signing_keys_p256 SET retired_at = now() - interval '1 minute'")
    await ensure_key(upgraded)
    assert [each for each, _ in await algorithms(upgraded)] == ["RS256"] * 2
    row = await upgraded.pool.fetchrow("SELECT key_id FROM signing_keys WHERE retired_at IS NULL")
    assert row is not None
    assert row["key_id"] == added


async def test_the_metadata_names_both_algorithms(merchant: Merchant) -> None:
    async with merchant.service.client() as http:
        found = json.loads((await http.get("/.well-known/oauth-authorization-server")).content)
    assert found["access_token_signing_alg_values_supported"] == ["ES256", "RS256"]
