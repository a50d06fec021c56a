"""A provider on loopback that sends any documents and ID tokens, including those that no honest provider sends."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from cuota.rails.identity.request import ProviderRequest
from cuota.rails.settings import ProviderSettings

ASKED = ProviderRequest("the-state", "the-nonce", "v" * 43, "https://pay.example/operator/provider/return")
SECRET = "the-client-secret-of-thirty-two-bytes!"
ACCESS_TOKEN = "the-access-token"


def at_hash(access_token: str) -> str:
    half = hashlib.sha256(access_token.encode()).digest()[:16]
    return base64.urlsafe_b64encode(half).rstrip(b"=").decode()


class Elapsed:
    """A clock that a test can move."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Forger:
    """A provider. `answers` has the status and document of each path; `asked` counts the requests by path."""

    issuer: str = ""
    key: RSAKey = field(
        default_factory=lambda: RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"})
    )
    answers: dict[str, tuple[int, object]] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    heard: dict[str, bytes] = field(default_factory=dict)

    def settings(self, **more: Any) -> ProviderSettings:
        return ProviderSettings(self.issuer, "cuota", SECRET, **{"loopback": True, **more})

    def metadata(self, **changes: Any) -> dict[str, Any]:
        """Return a correct discovery document with these changes. None removes a member."""
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            **changes,
        }
        return {name: value for name, value in document.items() if value is not None}

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return the claims of a correct ID token with these changes. None removes a claim; a timedelta is relative to now."""
        now = int(time.time())
        claims = {
            "iss": self.issuer, "sub": "ana", "aud": "cuota", "exp": now + 300, "iat": now, "nonce": ASKED.nonce,
            "email": "ana@company.example", "email_verified": True, "at_hash": at_hash(ACCESS_TOKEN), **changes,
        }  # fmt: skip
        return {
            name: now + int(value.total_seconds()) if isinstance(value, timedelta) else value
            for name, value in claims.items()
            if value is not None
        }

    def signed(self, claims: dict[str, Any], **header: Any) -> str:
        return jwt.encode({"alg": "RS256", "kid": "k1", **header}, claims, self.key, algorithms=["RS256"])

    def give(self, id_token: object, **more: Any) -> None:
        """Answer the token endpoint with this ID token."""
        self.answers["/token"] = (
            200,
            {"access_token": ACCESS_TOKEN, "token_type": "Bearer", "id_token": id_token, **more},
        )

    def publish(self, *keys: RSAKey) -> None:
        self.answers["/keys"] = 200, KeySet(list(keys)).as_dict(private=False)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1].decode()
            length = next(
                (
                    int(line[15:])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length:")
                ),
                0,
            )
            self.heard[path] = head + await reader.readexactly(length)
            self.asked[path] = self.asked.get(path, 0) + 1
            status, document = self.answers.get(path, (404, {}))
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            more = f"Location: {self.issuer}/moved\r\n" if status == 302 else ""
            writer.write(f"HTTP/1.1 {status} X\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def opened_forger() -> AsyncIterator[Forger]:
    """Start a provider with correct documents. A test can change them."""
    forger = Forger()
    server = await asyncio.start_server(forger._serve, "127.0.0.1", 0)
    forger.issuer = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    forger.answers["/.well-known/openid-configuration"] = 200, forger.metadata()
    forger.publish(forger.key)
    forger.give(forger.signed(forger.claims()))
    async with server:
        yield forger
