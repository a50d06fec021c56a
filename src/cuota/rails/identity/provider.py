"""A company's OpenID Connect provider: the authorization code flow with PKCE, state and nonce.

authlib makes the requests' parameters and checks the claims, and joserfc checks signatures. Cuota's own guarded client makes
the calls.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote_plus

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc.jwk import KeySet

from cuota.rails.identity.fetch import JsonClient
from cuota.rails.identity.id_token import Expected, UnknownKey, read_id_token
from cuota.rails.identity.metadata import WELL_KNOWN, Metadata, read_metadata
from cuota.rails.identity.request import ProofRefused, ProviderRequest
from cuota.rails.settings import ProviderSettings
from cuota.rails.unavailable import RailUnavailable

# The documents of the provider are used for this long. So Cuota accepts a withdrawn key for no longer than this.
LIFE_SECONDS = 3600.0
# An unknown key makes Cuota read the provider's keys again, but at most once within this time, whatever keys the tokens name.
LOOK_AGAIN_SECONDS = 60.0
# After a failure, calls fail at once for this long. So people do not wait for each other's timeouts.
DOWN_SECONDS = 5.0
SCOPE = "openid email profile"
_OF_SIGN_IN = ("amr", "acr", "auth_time")
log = logging.getLogger("cuota.identity")
T = TypeVar("T")


@dataclass(slots=True)
class _Kept(Generic[T]):
    """A document of the provider with the time of the read, and the time of the last failure."""

    read: Callable[[], Awaitable[T]]
    now: Callable[[], float]
    value: T | None = None
    at: float = 0.0
    failed: tuple[float, str] = (float("-inf"), "")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get(self, *, newest: float = LIFE_SECONDS) -> T:
        """Return the document if it was read at most `newest` seconds ago. Otherwise read it again. Raises RailUnavailable."""
        async with self.lock:
            now = self.now()
            if self.value is not None and now - self.at <= newest:
                return self.value
            if now - self.failed[0] < DOWN_SECONDS:
                raise RailUnavailable(self.failed[1])
            try:
                self.value = await self.read()
            except RailUnavailable as problem:
                self.failed = (self.now(), str(problem))
                raise
            self.at = self.now()
            return self.value


class IdentityProvider:
    """The provider in the settings. `now` is a clock of elapsed seconds that never goes backward."""

    def __init__(self, settings: ProviderSettings, *, now: Callable[[], float] = time.monotonic) -> None:
        self.issuer = settings.issuer
        self._settings = settings
        self._client: JsonClient | None = None
        self._metadata = _Kept(self._read_metadata, now)
        self._keys = _Kept(self._read_keys, now)

    def _http(self) -> JsonClient:
        # Created at the first use, because it reads the list of certificate authorities.
        if self._client is None:
            self._client = JsonClient(loopback=self._settings.loopback, private=self._settings.private)
        return self._client

    async def _read_metadata(self) -> Metadata:
        address = self.issuer.rstrip("/") + WELL_KNOWN
        return read_metadata(await self._http().get(address), self.issuer)

    async def _read_keys(self) -> KeySet:
        document = await self._http().get((await self._metadata.get()).jwks_uri)
        try:
            return KeySet.import_key_set(document)  # type: ignore[arg-type] # the library checks the document
        except Exception as wrong:
            raise RailUnavailable(f"the provider's keys cannot be read: {type(wrong).__name__}") from wrong

    async def address(self, asked: ProviderRequest, *, again: bool) -> str:
        """Return the address at which the person signs in. `again`: the person must sign in even if already signed in there.

        Raises RailUnavailable.
        """
        found = await self._metadata.get()
        more: dict[str, Any] = {"prompt": "login", "max_age": 0} if again else {}
        address = prepare_grant_uri(
            found.authorization_endpoint,
            client_id=self._settings.client_id,
            response_type="code",
            redirect_uri=asked.redirect_uri,
            scope=SCOPE,
            state=asked.state,
            nonce=asked.nonce,
            code_challenge=create_s256_code_challenge(asked.verifier),
            code_challenge_method="S256",
            **more,
        )
        return str(address)

    async def check_issuer(self, named: str | None) -> None:
        """Check which provider an answer names (RFC 9207). Raises ProofRefused, RailUnavailable."""
        if named is None and not (await self._metadata.get()).names_itself:
            return
        if named != self.issuer:
            raise ProofRefused("the answer names another provider, or none")

    async def claims(self, asked: ProviderRequest, code: str) -> dict[str, Any]:
        """Exchange the code, and return the provider's claims about the person. Raises ProofRefused, RailUnavailable."""
        found = await self._metadata.get()
        given = await self._exchange(found, asked, code)
        access_token = given.get("access_token")
        if not isinstance(access_token, str):
            raise ProofRefused("there is no access token")
        expected = Expected(self.issuer, self._settings.client_id, asked.nonce, access_token)
        token, keys = given.get("id_token"), await self._keys.get()
        try:
            claims = read_id_token(token, keys, found.algorithms, expected)
        except UnknownKey:
            keys = await self._keys.get(newest=LOOK_AGAIN_SECONDS)
            claims = read_id_token(token, keys, found.algorithms, expected)
        lacking = any(name not in claims for name in self._settings.claims)
        return await self._with_more(found, claims, access_token) if lacking else claims

    async def _exchange(self, found: Metadata, asked: ProviderRequest, code: str) -> dict[str, Any]:
        settings = self._settings
        body = prepare_token_request(
            "authorization_code", redirect_uri=asked.redirect_uri, code=code, code_verifier=asked.verifier
        )
        # In the header, both values are encoded as in a form (RFC 6749, section 2.3.1). The library leaves this to its caller.
        basic = found.auth_method == "client_secret_basic"
        named = (settings.client_id, settings.client_secret)
        auth = ClientAuth(*(map(quote_plus, named) if basic else named), found.auth_method)
        headers: dict[str, str] = {}
        _, headers, body = auth.prepare("POST", found.token_endpoint, headers, body)
        answer = await self._http().post(found.token_endpoint, list(headers.items()), body)
        if answer.status == 200:
            return answer.document
        if answer.status >= 500:
            raise RailUnavailable(f"the token endpoint answered {answer.status}")
        raise ProofRefused(f"the provider refused the code: {_word(answer.document.get('error'))}")

    async def _with_more(self, found: Metadata, claims: dict[str, Any], access_token: str) -> dict[str, Any]:
        """Add the claims that only the userinfo endpoint has.

        If both have a claim, the ID token's value is used. Claims about the way of signing in are read from the ID token only.
        """
        if not found.userinfo_endpoint:
            return claims
        more = await self._http().get(found.userinfo_endpoint, [("authorization", f"Bearer {access_token}")])
        if more.get("sub") != claims["sub"]:
            raise ProofRefused("the userinfo endpoint answers for another person")
        return {name: value for name, value in more.items() if name not in _OF_SIGN_IN} | claims

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()


def _word(error: object) -> str:
    """Return an error code in a form that is safe for a log."""
    text = error if isinstance(error, str) else ""
    return text[:40] if text.isascii() and text.replace("_", "").isalnum() else "another error"
