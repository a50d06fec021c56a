"""A real OpenID Connect provider on loopback: npm's certified `oidc-provider`, started by `tests/oidc/provider.mjs`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from cuota.rails.settings import ProviderSettings
from support.node_sdk import installed

FOLDER = Path(__file__).resolve().parents[2] / "oidc"
CLIENT_ID = "cuota"
# The secret contains characters that must be encoded in a header (RFC 6749, section 2.3.1).
CLIENT_SECRET = "a secret+/% of cuota"
OTHER_CLIENT = "another-dashboard"


@dataclass
class RealProvider:
    """A running provider. The tests create its accounts."""

    issuer: str
    process: asyncio.subprocess.Process
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def account(
        self, account_id: str, email: str, *, verified: bool = True, amr: tuple[str, ...] = (), signed_in_at: int | None = None,
        **claims: Any,
    ) -> str:  # fmt: skip
        """Create or change an account. Return its id, which is also its subject."""
        claims |= {"email": email, "email_verified": verified}
        account = {"id": account_id, "claims": claims, "amr": list(amr) or None, "signedInAt": signed_in_at}
        await self._tell({"account": account})
        return account_id

    async def new_keys(self) -> None:
        """Replace the keys that sign ID tokens. This also ends the people's sessions at the provider."""
        await self._tell({"keys": True})

    async def _tell(self, command: dict[str, Any]) -> None:
        assert self.process.stdin
        assert self.process.stdout
        async with self.lock:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            await self.process.stdin.drain()
            # The program prints other lines, too.
            while (line := await self.process.stdout.readline()) != b"done\n":
                assert line, "the provider has ended"

    def settings(self, **more: Any) -> ProviderSettings:
        """The settings of a service whose people sign in here."""
        known: dict[str, Any] = {"claims": ("email", "email_verified"), "loopback": True}
        return ProviderSettings(self.issuer, CLIENT_ID, CLIENT_SECRET, **{**known, **more})


@asynccontextmanager
async def opened_provider(
    public_url: str, *, claims_at_userinfo: bool = False
) -> AsyncIterator[RealProvider]:
    """Start a provider with a client for the service at this address."""
    client = {
        "client_secret": CLIENT_SECRET,
        "redirect_uris": [f"{public_url}/operator/provider/return"],
        "require_auth_time": True,
    }
    given = {
        "clients": [{"client_id": name, **client} for name in (CLIENT_ID, OTHER_CLIENT)],
        "claimsAtUserinfo": claims_at_userinfo,
    }
    process = await asyncio.create_subprocess_exec(
        "node", "provider.mjs", json.dumps(given),
        cwd=installed(FOLDER), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    try:
        issuer = (await process.stdout.readline()).decode().strip()
        assert issuer, "the provider did not start"
        yield RealProvider(issuer, process)
    finally:
        # The provider ends when its standard input ends.
        process.stdin.close()
        await process.wait()


class AtProvider:
    """One browser at the provider. Like every browser, it stays signed in."""

    def __init__(self) -> None:
        self.http = httpx.AsyncClient(trust_env=False, timeout=60)

    async def sign_in(self, address: str, account: str, *, cancel: bool = False) -> str:
        """Open the provider's address, sign in if it asks, and return the path and query to which the browser returns."""
        answer = await self.http.get(address)
        while True:
            if answer.is_redirect:
                target = urljoin(str(answer.url), answer.headers["location"])
                parts = urlsplit(target)
                if parts.path == "/operator/provider/return":
                    return f"{parts.path}?{parts.query}"
                answer = await self.http.get(target)
                continue
            assert answer.status_code == 200, answer.text
            assert "Sign in at the test provider" in answer.text
            data = {"account": account, **({"cancel": "1"} if cancel else {})}
            answer = await self.http.post(answer.url, data=data)
