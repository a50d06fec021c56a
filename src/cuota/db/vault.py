"""Secrets at rest: encrypted with AES-GCM, or kept as keyed hashes. The key itself is never in the database."""

from __future__ import annotations

import hmac
import os
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12


class WrongKey(Exception):  # noqa: N818 - the fact that stops the start
    """What is stored was encrypted under another CUOTA_SECRET_KEY."""


class Vault:
    """Each use has a key of its own, derived from the secret key, so that one hash is worthless as another."""

    def __init__(self, secret_key: bytes) -> None:
        self._secret_key = secret_key
        self._cipher = AESGCM(self._derive("encryption"))

    def _derive(self, use: str) -> bytes:
        return hmac.digest(self._secret_key, f"cuota:{use}".encode(), "sha256")

    def encrypt(self, text: str, bound_to: str) -> bytes:
        """Encrypt; `bound_to` (such as a merchant id) must be the same again to decrypt."""
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, text.encode(), bound_to.encode())

    def decrypt(self, stored: bytes, bound_to: str) -> str:
        """Decrypt; raise WrongKey for another key, another owner, or a changed byte."""
        try:
            return self._cipher.decrypt(stored[:_NONCE], stored[_NONCE:], bound_to.encode()).decode()
        except (InvalidTag, ValueError):
            # ValueError: it was cut short.
            raise WrongKey("CUOTA_SECRET_KEY is not the key that this database was written with.") from None

    def hash(self, use: str, text: str) -> bytes:
        """Keyed SHA-256 of a secret: enough for machine-made ones, and for codes that live minutes."""
        return hmac.digest(self._derive(use), text.encode(), "sha256")

    def consumer_id(self, phone: str) -> UUID:
        """The id of the consumer with this number: found without an index, meaningless without the key."""
        number = int.from_bytes(self.hash("consumer", phone)[:16], "big")
        # Version 8 is RFC 9562's for ids made by a rule of one's own.
        return UUID(int=number & ~(0xF000 << 64) & ~(0xC000 << 48) | (8 << 76) | (0x8000 << 48))
