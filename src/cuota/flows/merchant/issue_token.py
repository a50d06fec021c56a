"""Issues an access token for client credentials (RFC 6749, RFC 9068)."""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass

from joserfc import jws

from cuota.core.credential import TOKEN_SCOPES
from cuota.db.merchant import credentials
from cuota.db.merchant.credentials import Credential
from cuota.db.order.documents import encode
from cuota.flows.context import Context, utc_now
from cuota.flows.merchant.keys import ALGORITHMS, TOKEN_LIFE, Keys

FREE_FAILURES = 10
SLOW_AFTER = 3
RETRY_AFTER = 60
_REGISTRY = jws.JWSRegistry(algorithms=list(ALGORITHMS))


class TokenRefused(Exception):
    """A token request was refused. `error` is a code of RFC 6749. `retry_after` is in seconds, or None."""

    def __init__(self, error: str, description: str, *, retry_after: int | None = None) -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token request, parsed from any of the three accepted formats. `audience` is None if the request names none."""

    client_id: str
    client_secret: str
    audience: str | None


@dataclass(frozen=True, slots=True)
class AccessToken:
    """An access token and its lifetime in seconds."""

    access_token: str
    expires_in: int
    scope: str


async def issue_token(context: Context, keys: Keys, asked: TokenRequest) -> AccessToken:
    """Check the credential, then sign. A new token never invalidates an older one. Raises TokenRefused."""
    credential = await credentials.read(context.pool, asked.client_id)
    # An unknown client id and a wrong secret take the same time and get the same answer.
    good = _matches(context, credential, asked.client_secret)
    if credential is None or not good or credential.revoked_at is not None:
        await _slow_down(context, asked.client_id)
        raise TokenRefused(
            "invalid_client", "The client could not be authenticated. Check client_id and client_secret."
        )
    audience = _audience(context, asked.audience)
    await keys.load()
    now = utc_now()
    seconds = int(TOKEN_LIFE.total_seconds())
    issued = int(now.timestamp())
    claims = {
        "iss": context.settings.auth_url,
        "sub": credential.client_id,
        "client_id": credential.client_id,
        "aud": audience,
        "iat": issued,
        "exp": issued + seconds,
        "jti": str(context.new_id()),
        "scope": TOKEN_SCOPES[credential.scope],
    }
    key = keys.signer(now)
    header = {"alg": key.alg, "kid": key.kid, "typ": "at+jwt"}
    token = jws.serialize_compact(header, encode(claims), key, registry=_REGISTRY)
    return AccessToken(token, seconds, TOKEN_SCOPES[credential.scope])


def _audience(context: Context, asked: str | None) -> str:
    """Return the requested audience if the service has it, or the service's first audience if none is requested."""
    ours = context.settings.audiences
    if asked is None:
        return ours[0]
    named = asked.rstrip("/")
    if named not in ours:
        valid = ours[0] if len(ours) == 1 else f"one of {', '.join(ours)}"
        raise TokenRefused("invalid_target", f"The audience must be {valid}.")
    return named


def _matches(context: Context, credential: Credential | None, secret: str) -> bool:
    given = context.vault.hash("client-secret", secret)
    nobody = bytes(32)
    current = credential.secret_hash if credential else nobody
    old = credential.old_secret_hash if credential and credential.old_secret_hash else nobody
    old_ends = credential.old_secret_ends_at if credential else None
    is_current = hmac.compare_digest(given, current)
    is_old = hmac.compare_digest(given, old)
    return is_current or (is_old and old_ends is not None and utc_now() < old_ends)


async def _slow_down(context: Context, client_id: str) -> None:
    """Count a failure for this client id, over all processes. Successful requests are not counted."""
    # The id is stored as a keyed hash, because somebody may have typed a secret in its place.
    client = context.vault.hash("token-failures", client_id)
    now = utc_now()
    earlier = await credentials.failures(context.pool, client, now)
    await credentials.failed(context.pool, client, now)
    if earlier >= FREE_FAILURES:
        message = "Too many failed attempts for this client_id. Wait a minute, then check the credentials."
        raise TokenRefused("temporarily_unavailable", message, retry_after=RETRY_AFTER)
    if earlier >= SLOW_AFTER:
        await asyncio.sleep(0.1 * (earlier - SLOW_AFTER + 1))
