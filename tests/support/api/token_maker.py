"""Makes access tokens as an attacker, another issuer or a careless library might make them."""

from __future__ import annotations

import time
from typing import Any

from joserfc import jwt
from joserfc.jwk import RSAKey

from cuota.flows.context import utc_now
from cuota.flows.merchant.keys import Keys
from support.makers import Merchant, Running

ABSENT = object()


async def signing_key(service: Running) -> RSAKey:
    """Return the key that the service signs with now."""
    keys = Keys(service.context)
    await keys.load()
    return keys.signer(utc_now())


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


async def forge(merchant: Merchant, *, header: dict[str, Any] | None = None, **changes: Any) -> str:
    """Return a token signed with the service's own key, with changed claims and header."""
    key = await signing_key(merchant.service)
    whole = {"alg": "RS256", "kid": key.kid, "typ": "at+jwt", **(header or {})}
    whole = {name: value for name, value in whole.items() if value is not ABSENT}
    return jwt.encode(whole, claims_of(merchant, **changes), key, algorithms=["RS256"])
