"""Secrets at rest: encrypted with AES-GCM, or kept as keyed hashes. The secret key itself is never in the database."""

from __future__ import annotations

import hmac
import os
from collections.abc import Sequence
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE = 12
# A nonce begins with its key's id. The other 9 bytes are random: after a million encryptions under one key the chance
# that two share a nonce is 1 in 2^33. The release before this one ignores what a nonce means, and reads it too.
_KEY_ID = 3


class WrongKey(Exception):
    """What is stored was encrypted under another CUOTA_SECRET_KEY."""


def derived(key: bytes, use: str) -> bytes:
    """Each use has a key of its own, so that one hash is worthless as another."""
    return hmac.digest(key, f"cuota:{use}".encode(), "sha256")


class _Key:
    """One secret key: its id, which may be shown, and what it encrypts with."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.id = derived(secret, "key-id")[:_KEY_ID]
        self.cipher = AESGCM(derived(secret, "encryption"))


class Vault:
    """Encrypts with the secret key, reads with the old ones too, and hashes with the installation's hash key.

    The hash key never changes (`flows/secret/open_vault.py`), so that ids and hashes outlive every secret key. Without one,
    the secret key stands for it, as it did in earlier releases.
    """

    def __init__(
        self, secret_key: bytes, old_keys: Sequence[bytes] = (), hash_key: bytes | None = None
    ) -> None:
        self._keys = [_Key(secret) for secret in (secret_key, *old_keys)]
        self._hash_key = hash_key or secret_key

    @property
    def key_id(self) -> str:
        """The id of the key that encrypts."""
        return self._keys[0].id.hex()

    def encrypt(self, text: str, bound_to: str) -> bytes:
        """Encrypt; `bound_to` (such as a merchant id) must be the same again to decrypt."""
        key = self._keys[0]
        nonce = key.id + os.urandom(_NONCE - _KEY_ID)
        return nonce + key.cipher.encrypt(nonce, text.encode(), bound_to.encode())

    def decrypt(self, stored: bytes, bound_to: str) -> str:
        """Decrypt; raise WrongKey where no key fits, for another owner, or a changed byte."""
        return self._opened(stored, bound_to)[1]

    def is_current(self, stored: bytes, bound_to: str) -> bool:
        """Whether this was encrypted with the present key and not an old one; raises WrongKey where none fits."""
        return self._opened(stored, bound_to)[0] is self._keys[0]

    def key_of(self, stored: bytes, bound_to: str) -> bytes:
        """The secret key that this was encrypted with; raises WrongKey."""
        return self._opened(stored, bound_to)[0].secret

    def _opened(self, stored: bytes, bound_to: str) -> tuple[_Key, str]:
        # The named key first. What an earlier release wrote names none, so all are tried: a key either fits or does not.
        for key in sorted(self._keys, key=lambda key: key.id != stored[:_KEY_ID]):
            try:
                text = key.cipher.decrypt(stored[:_NONCE], stored[_NONCE:], bound_to.encode())
            except (InvalidTag, ValueError):  # ValueError: it was cut short
                continue
            return key, text.decode()
        raise WrongKey(
            "CUOTA_SECRET_KEY is not the key that this database was written with. Set that key, as CUOTA_SECRET_KEY"
            " or, to replace it, as CUOTA_SECRET_KEY_OLD."
        )

    def hash(self, use: str, text: str) -> bytes:
        """Keyed SHA-256 of an id, or of a secret that is too long to be guessed."""
        return hmac.digest(derived(self._hash_key, use), text.encode(), "sha256")

    def code_hashes(self, text: str) -> list[bytes]:
        """Keyed SHA-256 of a one-time code: under the present secret key, by which it is kept, then under old ones.

        A code can be guessed by whoever has its key, so it is not kept under the hash key, which is never replaced.
        """
        return [hmac.digest(derived(key.secret, "code"), text.encode(), "sha256") for key in self._keys]

    def consumer_id(self, phone: str) -> UUID:
        """The id of the consumer with this number: found without an index, meaningless without the key."""
        number = int.from_bytes(self.hash("consumer", phone)[:16], "big")
        # Version 8 is RFC 9562's for ids made by a rule of one's own.
        return UUID(int=number & ~(0xF000 << 64) & ~(0xC000 << 48) | (8 << 76) | (0x8000 << 48))
