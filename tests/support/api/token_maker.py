"""Makes access tokens as an attacker, another issuer or a careless library might make them."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime
from typing import Any

from joserfc import jws

from cuota.db.merchant import credentials
from cuota.flows.context import utc_now
from cuota.flows.merchant.keys import Algorithm, SigningKey, _made
from support.makers import Merchant, Running

ABSENT = object()


async def signing_key(service: Running, algorithm: Algorithm = "ES256") -> SigningKey:
    """Return the key with which the service signs now (ES256), or a key as an earlier release made it (RS256)."""
    keys = service.app.service.keys
    await keys.load()
    if algorithm == "ES256":
        return keys.signer(utc_now())
    key_id = "20200101-earlier"
    if keys.find(key_id) is None:
        pem = _made(key_id, "RS256").as_pem(private=True).decode()
        sealed = service.context.vault.encrypt(pem, f"signing-key:{key_id}")
        long_ago = datetime(2020, 1, 1, tzinfo=UTC)
        await credentials.add_key(service.context.pool, key_id, "RS256", sealed, long_ago)
        await keys.load(older_than=0)
    found = keys.find(key_id)
    assert found is not None
    return found


def claims_of(merchant: Merchant, **changes: Any) -> dict[str, Any]:
    """Return the claims of a valid token, with changes. ABSENT leaves a claim out."""
    settings = merchant.service.settings
    now = int(time.time())
    claims = {
        "iss": settings.auth_url,
        "sub": merchant.client_id,
        "client_id": merchant.client_id,
        "aud": settings.audience,
        "iat": now,
        "exp": now + 600,
        "jti": "0198c0de-0000-7000-8000-000000000000",
        "scope": "merchant orders",
        **changes,
    }
    return {name: value for name, value in claims.items() if value is not ABSENT}


async def forge(
    merchant: Merchant,
    *,
    header: dict[str, Any] | None = None,
    algorithm: Algorithm = "ES256",
    **changes: Any,
) -> str:
    """Return a token signed with the service's own key, with changed claims and header."""
    key = await signing_key(merchant.service, algorithm)
    whole = {"alg": algorithm, "kid": key.kid, "typ": "at+jwt", **(header or {})}
    whole = {name: value for name, value in whole.items() if value is not ABSENT}
    return signed(whole, claims_of(merchant, **changes), key)


def signed(header: dict[str, Any], claims: dict[str, Any], key: SigningKey) -> str:
    """Return a token with exactly this header, signed with the key's own algorithm even if the header names another."""
    head, body = (_encoded(json.dumps(part).encode()) for part in (header, claims))
    algorithm = jws.JWSRegistry(algorithms=["ES256", "RS256"]).get_alg(str(key.alg))
    return f"{head}.{body}.{_encoded(algorithm.sign(f'{head}.{body}'.encode(), key))}"


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
