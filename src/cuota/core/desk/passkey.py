"""A passkey of a user of either dashboard, and the relying party to which browsers bind passkeys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

LONGEST_NAME = 100
# Per person. Nobody has this many devices.
MOST_PASSKEYS = 20
# The longest credential ID that WebAuthn allows.
MOST_CREDENTIAL_BYTES = 1023


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey. `credential_id` is the authenticator's name for it, `public_key` its key (COSE).

    `sign_count` is the authenticator's counter at the last use. Many authenticators have no counter and always report 0.
    """

    passkey_id: UUID
    person_id: UUID
    credential_id: bytes
    public_key: bytes
    sign_count: int
    name: str
    added_at: datetime
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The host name to which browsers bind passkeys, and the only origin whose pages may use them."""

    host: str
    origin: str


def relying_party(public_url: str) -> RelyingParty:
    """Return the relying party of a service at this address. Browsers leave a scheme's default port out of an origin."""
    url = urlsplit(public_url)
    host = url.hostname or ""
    default = {"https": 443, "http": 80}.get(url.scheme)
    port = "" if url.port in {None, default} else f":{url.port}"
    return RelyingParty(host, f"{url.scheme}://{f'[{host}]' if ':' in host else host}{port}")


def read_passkey_name(typed: str) -> str | None:
    """Return the name without surrounding spaces, or None if it is empty, too long, or not printable."""
    text = " ".join(typed.split())
    return text if 1 <= len(text) <= LONGEST_NAME and text.isprintable() else None
