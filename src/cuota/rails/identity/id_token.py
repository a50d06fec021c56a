"""Checks an ID token (OpenID Connect Core 1.0, section 3.1.3.7): the signature by joserfc, the claims by authlib.

Both libraries leave some checks to their caller. This module makes those checks, each with its reason.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from authlib.oidc.core.claims import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from cuota.rails.identity.request import ProofRefused

# The clocks of two machines may differ by this much.
LEEWAY = 60
# An ID token is made for this sign-in, so it is only seconds old.
OLDEST = 600
LONGEST_SUBJECT = 255
_LONGEST_HEADER = 4096


class UnknownKey(ProofRefused):
    """The token names an unknown key. The provider may have a new key."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The required content of the token. `access_token` is the access token from the same response."""

    issuer: str
    client_id: str
    nonce: str
    access_token: str


def read_id_token(
    text: object, keys: KeySet, algorithms: tuple[str, ...], expected: Expected
) -> dict[str, Any]:
    """Return the claims. Raises ProofRefused, and UnknownKey if the provider's keys should be read again."""
    if not isinstance(text, str):
        raise ProofRefused("there is no ID token")
    registry = JWSRegistry(algorithms=algorithms, strict_check_header=False)
    # Some providers put a certificate into the header.
    registry.max_header_length = _LONGEST_HEADER
    try:
        token = jwt.decode(text, keys, registry=registry)
    except InvalidKeyIdError:
        raise UnknownKey("the ID token is signed with an unknown key") from None
    except Exception as wrong:
        # A token that no provider makes can raise other exceptions than the library's own.
        raise ProofRefused(f"the ID token cannot be read: {type(wrong).__name__}") from wrong
    options = {
        "iss": {"essential": True, "value": expected.issuer},
        "aud": {"essential": True, "value": expected.client_id},
        "nonce": {"essential": True},
    }
    given = {
        "nonce": expected.nonce,
        "client_id": expected.client_id,
        "access_token": expected.access_token,
    }
    try:
        CodeIDToken(token.claims, token.header, options, given).validate(leeway=LEEWAY)
        _check(token.claims, expected)
    except ProofRefused:
        raise
    except Exception as wrong:
        raise ProofRefused(f"the ID token is wrong: {type(wrong).__name__} {wrong}"[:200]) from wrong
    return dict(token.claims)


def _check(claims: dict[str, Any], expected: Expected) -> None:
    """Make the checks that the library does not make."""
    # The library accepts a token with several audiences, including ours. Cuota accepts no other audience.
    if claims["aud"] not in (expected.client_id, [expected.client_id]):
        raise ProofRefused("the ID token is for others, too")
    if not 1 <= len(claims["sub"]) <= LONGEST_SUBJECT or not claims["sub"].isprintable():
        raise ProofRefused("the subject is empty or too long")
    now = time.time()
    if claims["iat"] < now - OLDEST - LEEWAY:
        raise ProofRefused("the ID token is old")
    at = claims.get("auth_time")
    if at is not None and (isinstance(at, bool) or not 0 <= at <= now + LEEWAY):
        raise ProofRefused("the time of the sign-in is wrong")
