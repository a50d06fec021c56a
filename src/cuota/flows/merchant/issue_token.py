"""Issue an access token for client credentials (RFC 6749, RFC 9068)."""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass

from joserfc import jwt

from cuota.db.merchant import credentials
from cuota.db.merchant.credentials import Credential
from cuota.flows.context import Context, utc_now
from cuota.flows.merchant.keys import ALGORITHM, TOKEN_LIFE, Keys

SCOPE = "merchant orders"
FREE_FAILURES = 10
SLOW_AFTER = 3
RETRY_AFTER = 60


class TokenRefused(Exception):
    """`error` is RFC 6749's; `retry_after` in seconds where the caller is to wait."""

    def __init__(self, error: str, description: str, *, retry_after: int | None = None) -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """What was asked for, from whatever of the three forms. `audience` is None where none was named."""

    client_id: str
    client_secret: str
    audience: str | None


@dataclass(frozen=True, slots=True)
class AccessToken:
    """An access token; lifetime in seconds."""

    access_token: str
    expires_in: int
    scope: str


async def issue_token(context: Context, keys: Keys, asked: TokenRequest) -> AccessToken:
    """Check the credential, then sign. A new token never invalidates an older one. Raises TokenRefused."""
    credential = await credentials.read(context.pool, asked.client_id)
    # The same work and the same words for an unknown id and a wrong secret.
    good = _matches(context, credential, asked.client_secret)
    if credential is None or not good or credential.revoked_at is not None:
        await _slow_down(context, asked.client_id)
        raise TokenRefused(
            "invalid_client", "The caller could not be authenticated. Check client_id and client_secret."
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
        "scope": SCOPE,
    }
    key = keys.signer(now)
    header = {"alg": ALGORITHM, "kid": key.kid, "typ": "at+jwt"}
    return AccessToken(jwt.encode(header, claims, key, algorithms=[ALGORITHM]), seconds, SCOPE)


def _audience(context: Context, asked: str | None) -> str:
    """The one that was named, where it is one of ours; the first of ours for a request that names none."""
    ours = context.settings.audiences
    if asked is None:
        return ours[0]
    named = asked.rstrip("/")
    if named not in ours:
        known = ours[0] if len(ours) == 1 else f"one of {', '.join(ours)}"
        raise TokenRefused("invalid_target", f"This issuer's audience is {known}.")
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
    """Only failures are counted, over all processes, by client id: good callers never meet this."""
    # Keyed: what was typed for an id may be somebody's secret.
    client = context.vault.hash("token-failures", client_id)
    now = utc_now()
    earlier = await credentials.failures(context.pool, client, now)
    await credentials.failed(context.pool, client, now)
    if earlier >= FREE_FAILURES:
        message = "Too many failed attempts for this client_id. Wait a minute, then check the credentials."
        raise TokenRefused("temporarily_unavailable", message, retry_after=RETRY_AFTER)
    if earlier >= SLOW_AFTER:
        await asyncio.sleep(0.1 * (earlier - SLOW_AFTER + 1))
