"""A software authenticator with passkeys, and the browser's part of WebAuthn, for tests without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

_PRESENT, _VERIFIED, _ATTESTED = 0x01, 0x04, 0x40


def bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def text_of(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@dataclass
class Key:
    """A passkey in the authenticator. `count` is its signature counter; 0 if the authenticator has no counter."""

    credential_id: bytes
    private: ec.EllipticCurvePrivateKey
    handle: bytes
    count: int = 0


@dataclass
class Authenticator:
    """A person's device, and a browser at `origin`. `verified` means that the device verified the person."""

    origin: str
    verified: bool = True
    keys: list[Key] = field(default_factory=list)

    @property
    def _host(self) -> str:
        return self.origin.partition("://")[2].partition(":")[0]

    def _client_data(self, kind: str, challenge: str, **more: Any) -> bytes:
        said = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False, **more}
        return json.dumps(said).encode()

    def _data(self, count: int, flags: int = 0, rest: bytes = b"") -> bytes:
        flags |= _PRESENT | (_VERIFIED if self.verified else 0)
        return hashlib.sha256(self._host.encode()).digest() + bytes([flags]) + count.to_bytes(4) + rest

    def create(self, options: dict[str, Any], *, count: int = 0, credential_id: bytes | None = None) -> str:
        """Make a passkey, as `navigator.credentials.create` does."""
        key = Key(
            credential_id or secrets.token_bytes(32), ec.generate_private_key(ec.SECP256R1()),
            bytes_of(options["user"]["id"]), count,
        )  # fmt: skip
        self.keys.append(key)
        point = key.private.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32), -3: point.y.to_bytes(32)}
        attested = bytes(16) + len(key.credential_id).to_bytes(2) + key.credential_id + cbor2.dumps(cose)
        made = {"fmt": "none", "attStmt": {}, "authData": self._data(count, _ATTESTED, attested)}
        response = {
            "clientDataJSON": text_of(self._client_data("webauthn.create", options["challenge"])),
            "attestationObject": text_of(cbor2.dumps(made)),
        }
        return self._told(key, response)

    def get(self, options: dict[str, Any], *, key: Key | None = None, **said: Any) -> str:
        """Answer with a passkey, as `navigator.credentials.get` does. `said` changes what the browser says."""
        key = key or self.keys[-1]
        if key.count:
            key.count += 1
        client_data = self._client_data("webauthn.get", options["challenge"], **said)
        data = self._data(key.count)
        signed = key.private.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(hashes.SHA256()))
        response = {
            "clientDataJSON": text_of(client_data),
            "authenticatorData": text_of(data),
            "signature": text_of(signed),
            "userHandle": text_of(key.handle),
        }
        return self._told(key, response)

    @staticmethod
    def _told(key: Key, response: dict[str, str]) -> str:
        name = text_of(key.credential_id)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})
