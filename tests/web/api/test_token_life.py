"""Which tokens stay valid after rotated secrets, revoked credentials and rotated keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from cuota import config
from cuota.core.refusal import Refused
from cuota.db.merchant import credentials
from cuota.flows.context import Context, utc_now
from cuota.flows.merchant import manage_merchants
from cuota.flows.merchant.authenticate import Callers
from cuota.flows.merchant.issue_token import TokenRequest, issue_token
from cuota.flows.merchant.keys import NOTICE, Keys, rotate_keys
from cuota.flows.merchant.manage_merchants import BadMerchant
from cuota.run import runtime
from support.makers import Merchant, Running


async def status_with(merchant: Merchant, secret: str) -> int:
    body = {
        "client_id": merchant.client_id,
        "client_secret": secret,
        "audience": merchant.service.settings.audience,
        "grant_type": "client_credentials",
    }
    async with merchant.service.client() as http:
        return (await http.post("/oauth/token", json=body)).status_code


async def test_during_a_rotation_two_secrets_are_valid(merchant: Merchant) -> None:
    context, name = merchant.service.context, str(merchant.merchant_id)
    [(client_id, new)] = await manage_merchants.rotate_secret(context, name, timedelta(hours=24))
    assert client_id == merchant.client_id
    assert await status_with(merchant, merchant.client_secret) == 200
    assert await status_with(merchant, new) == 200


async def test_the_old_secret_expires_when_its_time_is_over(merchant: Merchant) -> None:
    context, name = merchant.service.context, str(merchant.merchant_id)
    [(_, new)] = await manage_merchants.rotate_secret(context, name, timedelta(0))
    assert await status_with(merchant, merchant.client_secret) == 401
    assert await status_with(merchant, new) == 200


async def test_a_second_rotation_never_ends_the_secret_that_is_in_use(merchant: Merchant) -> None:
    context, name, day = merchant.service.context, str(merchant.merchant_id), timedelta(hours=24)
    with pytest.raises(BadMerchant, match="no old client secret"):
        await manage_merchants.rotate_secret(context, name, day, again=True)
    [(_, lost)] = await manage_merchants.rotate_secret(context, name, day)
    with pytest.raises(BadMerchant, match=r"the old secret is still valid.*--again.*--end-old"):
        await manage_merchants.rotate_secret(context, name, day)
    assert [await status_with(merchant, each) for each in (merchant.client_secret, lost)] == [200, 200]
    [(_, new)] = await manage_merchants.rotate_secret(context, name, day, again=True)
    assert [await status_with(merchant, each) for each in (merchant.client_secret, lost, new)] == [
        200,
        401,
        200,
    ]
    await manage_merchants.end_old_secret(context, name)
    assert [await status_with(merchant, each) for each in (merchant.client_secret, new)] == [401, 200]
    with pytest.raises(BadMerchant, match="no old client secret"):
        await manage_merchants.end_old_secret(context, name)


async def test_rotating_a_secret_does_not_invalidate_tokens(merchant: Merchant) -> None:
    await manage_merchants.rotate_secret(merchant.service.context, str(merchant.merchant_id), timedelta(0))
    assert (await merchant.http.get("/configuration")).status_code == 200


async def test_secrets_are_stored_as_hashes(merchant: Merchant) -> None:
    row = await merchant.service.context.pool.fetchrow(
        "SELECT c::text AS all FROM credentials c WHERE client_id = $1", merchant.client_id
    )
    assert row is not None
    assert merchant.client_secret not in row["all"]
    assert merchant.client_secret.encode().hex() not in row["all"]


async def test_a_revoked_credential_stops_its_tokens_within_5_seconds(merchant: Merchant) -> None:
    assert (await merchant.http.get("/configuration")).status_code == 200
    await manage_merchants.revoke_merchant(merchant.service.context, str(merchant.merchant_id))
    # This is the promise itself, not a measure of speed: after 5 seconds the token must be refused.
    for _ in range(20):
        if (await merchant.http.get("/configuration")).status_code == 401:
            break
        await asyncio.sleep(0.25)
    assert (await merchant.http.get("/configuration")).status_code == 401
    assert await status_with(merchant, merchant.client_secret) == 401


async def test_the_key_set_is_public_and_verifies_a_token(merchant: Merchant) -> None:
    async with merchant.service.client() as http:
        keys = (await http.get("/.well-known/jwks.json")).json()
    members = {key["alg"]: set(key) - {"kty", "kid", "use", "alg"} for key in keys["keys"]}
    assert members["ES256"] == {"crv", "x", "y"}
    assert members.get("RS256", {"n", "e"}) == {"n", "e"}
    token = merchant.http.headers["authorization"].removeprefix("Bearer ")
    read = jwt.decode(token, KeySet.import_key_set(keys), algorithms=["ES256"])
    settings = merchant.service.settings
    assert read.header["typ"] == "at+jwt"
    assert read.claims["client_id"] == read.claims["sub"] == merchant.client_id
    assert (read.claims["iss"], read.claims["aud"]) == (settings.auth_url, settings.audience)
    assert read.claims["exp"] - read.claims["iat"] == 86400
    assert read.claims["scope"] == "merchant orders"
    assert read.claims["jti"]


async def test_the_metadata_names_the_address_and_the_methods_to_get_a_token(service: Running) -> None:
    async with service.client() as http:
        found = (await http.get("/.well-known/oauth-authorization-server")).json()
    issuer = service.settings.auth_url
    assert found["issuer"] == issuer
    assert found["token_endpoint"] == f"{issuer}/oauth/token"
    assert found["jwks_uri"] == f"{issuer}/.well-known/jwks.json"
    assert found["grant_types_supported"] == ["client_credentials"]
    assert set(found["token_endpoint_auth_methods_supported"]) == {
        "client_secret_basic",
        "client_secret_post",
    }


class Process:
    """Return the caches of one process of the service."""

    def __init__(self, context: Context) -> None:
        self.keys = Keys(context)
        self.callers = Callers(context, self.keys)


@pytest.fixture
async def own_context(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Context]:
    """A separate database, so that rotating keys affects no other test."""
    async with runtime.opened(settings, own_database, pool_size=4) as context:
        yield context


async def make_asked(context: Context) -> TokenRequest:
    new = await manage_merchants.create_merchant(context, manage_merchants.MerchantTerms(name="Keys"))
    return TokenRequest(new.client_id, new.client_secret, new.audience)


async def issued(context: Context, process: Process, asked: TokenRequest) -> str:
    return f"Bearer {(await issue_token(context, process.keys, asked)).access_token}"


async def test_keys_rotate_without_downtime_on_every_process(own_context: Context) -> None:
    asked = await make_asked(own_context)
    here, there = Process(own_context), Process(own_context)
    old = await issued(own_context, here, asked)
    assert await there.callers.caller(old)
    await rotate_keys(own_context, at_once=True)
    # A process that starts now signs with the new key. `there` has never read that key, and finds it at the first
    # token.
    there.keys._read_at -= 2
    new = await issued(own_context, Process(own_context), asked)
    assert await there.callers.caller(new)
    assert await there.callers.caller(old)
    assert await Process(own_context).callers.caller(old)


async def test_a_new_key_is_published_before_it_signs(own_context: Context) -> None:
    keys = Keys(own_context)
    await keys.load()
    before = keys.signer(utc_now()).kid
    added = await rotate_keys(own_context)
    await keys.load(older_than=0)
    assert {key["kid"] for key in keys.public()["keys"]} == {before, added}  # type: ignore[attr-defined]
    assert keys.signer(utc_now()).kid == before
    assert keys.signer(utc_now() + NOTICE).kid == added


async def test_a_machine_whose_clock_is_behind_the_one_that_made_the_first_key_issues_valid_tokens(
    own_context: Context,
) -> None:
    asked = await make_asked(own_context)
    # The machine that made the first key had a clock that was an hour ahead, or the time service set this clock back since.
    owned = "UPDATE signing_keys_p256 SET active_at = active_at + interval '1 hour'"
    await own_context.pool.execute(owned)
    token = await issued(own_context, Process(own_context), asked)
    assert await Process(own_context).callers.caller(token)


async def test_a_token_signed_with_a_retired_key_is_refused(own_context: Context) -> None:
    asked = await make_asked(own_context)
    old = await issued(own_context, Process(own_context), asked)
    added = await rotate_keys(own_context, at_once=True)
    await own_context.pool.execute("UPDATE signing_keys_p256 SET retired_at = NULL WHERE key_id <> $1", added)
    await credentials.retire_others(own_context.pool, added, utc_now())
    with pytest.raises(Refused, match="token"):
        await Process(own_context).callers.caller(old)
