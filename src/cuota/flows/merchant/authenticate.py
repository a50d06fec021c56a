"""Finds the merchant that sends a request.

An access token is verified once and then cached by its hash. A merchant is cached for at most two seconds.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass

from joserfc import jws
from joserfc.errors import JoseError

from cuota.core.credential import Scope, credential_name
from cuota.core.merchant import Merchant
from cuota.core.refusal import Code, Refused
from cuota.core.wire.strict_json import BadJson, read_json
from cuota.db.merchant import merchants
from cuota.db.row_security import narrow
from cuota.flows.context import Context, utc_now
from cuota.flows.merchant.keys import ALGORITHMS, Keys, SigningKey

REMEMBER_SECONDS = 60.0
FRESH_SECONDS = 2.0
MOST_REMEMBERED = 20_000
LONGEST_TOKEN = 4096
_REGISTRY = jws.JWSRegistry(algorithms=list(ALGORITHMS))


def unauthorized() -> Refused:
    """Return the refusal for every kind of invalid token."""
    return Refused(
        Code.UNAUTHORIZED, "The access token is missing, wrong or expired. Get a new one from /oauth/token."
    )


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls the API: a merchant, and the credential whose token the call has. `name` is the credential's, or empty.

    `staffed`: the merchant's dashboard has people.
    """

    merchant: Merchant
    scope: Scope
    client_id: str
    name: str
    staffed: bool

    @property
    def words(self) -> str:
        """The credential's name with its client id."""
        return f"{credential_name(self.name)} ({self.client_id})"


@dataclass(slots=True)
class _Entry:
    caller: Caller | None
    read_at: float


class Callers:
    """The cache of tokens and merchants in one process. A revoked credential is refused within two seconds."""

    def __init__(self, context: Context, keys: Keys) -> None:
        self._context = context
        self._keys = keys
        self._tokens: dict[bytes, tuple[str, float, float]] = {}
        self._merchants: dict[str, _Entry] = {}
        self._reading: dict[str, asyncio.Task[_Entry]] = {}

    def forget(self) -> None:
        """Clear the cache, because the sandbox went back to an earlier state."""
        self._tokens.clear()
        self._merchants.clear()

    async def caller(self, authorization: str | None) -> Caller:
        """Return the merchant and the credential of an Authorization header. Raises Refused(unauthorized)."""
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > LONGEST_TOKEN or not token.isascii():
            raise unauthorized()
        digest = hashlib.sha256(token.encode()).digest()
        known = self._tokens.get(digest)
        if known is None or known[2] < time.monotonic():
            known = await self._verify(token, digest)
        client_id, expires_at, _ = known
        if expires_at <= time.time():
            raise unauthorized()
        caller = (await self._fresh(client_id)).caller
        if caller is None:
            raise unauthorized()
        narrow(caller.merchant.merchant_id)
        return caller

    async def require(self, caller: Caller) -> None:
        """Raise Refused(unauthorized) if the caller's credential was revoked meanwhile."""
        if (await self._fresh(caller.client_id)).caller is None:
            raise unauthorized()

    async def _verify(self, token: str, digest: bytes) -> tuple[str, float, float]:
        claims = await self._claims(token)
        settings = self._context.settings
        now = utc_now().timestamp()
        expires_at, client_id = claims.get("exp"), claims.get("sub")
        good = (
            claims.get("iss") == settings.auth_url
            and claims.get("aud") in settings.audiences
            and type(expires_at) is int
            and now < expires_at < now + 10 * 365 * 86400
            and type(client_id) is str
            and claims.get("client_id") == client_id
            and _not_before(claims.get("nbf"), now)
        )
        if not good:
            raise unauthorized()
        assert isinstance(client_id, str)
        assert isinstance(expires_at, int)
        if len(self._tokens) >= MOST_REMEMBERED:
            self._tokens.clear()
        known = (client_id, float(expires_at), time.monotonic() + REMEMBER_SECONDS)
        self._tokens[digest] = known
        return known

    async def _claims(self, token: str) -> dict[str, object]:
        try:
            parts = jws.extract_compact(token.encode(), registry=_REGISTRY)
            header = parts.headers()
            if (
                header.get("alg") not in ALGORITHMS
                or header.get("typ") != "at+jwt"
                or set(header) - {"alg", "typ", "kid"}
            ):
                raise unauthorized()
            key = await self._key(header.get("kid"))
            # A key verifies nothing but signatures by its own algorithm.
            if key.alg != header["alg"] or not jws.validate_compact(parts, key, registry=_REGISTRY):
                raise unauthorized()
            claims = read_json(parts.payload)
        except (JoseError, ValueError, BadJson):
            raise unauthorized() from None
        if not isinstance(claims, dict):
            raise unauthorized()
        return claims

    async def _key(self, key_id: object) -> SigningKey:
        if not isinstance(key_id, str):
            raise unauthorized()
        await self._keys.load()
        found = self._keys.find(key_id)
        if found is None:
            # Another process may have rotated the keys a moment ago. The keys are read at most once a second.
            await self._keys.load(older_than=1.0)
            found = self._keys.find(key_id)
        if found is None:
            raise unauthorized()
        return found

    async def _fresh(self, client_id: str) -> _Entry:
        entry = self._merchants.get(client_id)
        if entry is not None and time.monotonic() - entry.read_at < FRESH_SECONDS:
            return entry
        # If several requests find the entry stale, one reads it again and the others wait for the result.
        task = self._reading.get(client_id)
        if task is None:
            task = asyncio.create_task(self._read(client_id))
            self._reading[client_id] = task
            task.add_done_callback(lambda _: self._reading.pop(client_id, None))
        return await asyncio.shield(task)

    async def _read(self, client_id: str) -> _Entry:
        started = time.monotonic()
        found = await merchants.read_by_client(self._context.pool, client_id)
        caller = None if found is None else Caller(found[0], found[1], client_id, found[2], found[3])
        if len(self._merchants) >= MOST_REMEMBERED:
            self._merchants.clear()
        entry = self._merchants[client_id] = _Entry(caller, started)
        return entry


def _not_before(value: object, now: float) -> bool:
    return value is None or (type(value) is int and value <= now)
