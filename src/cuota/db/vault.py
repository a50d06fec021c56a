"""Encrypts stored secrets with AES-GCM and computes keyed hashes. The secret key itself is never in the database."""

from __future__ import annotations

import hmac
import os
from collections.abc import Sequence
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cuota.core.expected_failure import ExpectedFailure
from cuota.core.wire.packed_text import pack, unpack

_NONCE = 12
# A nonce begins with the id of its key. The other 9 bytes are random: after a million encryptions with one key, the chance
# that two nonces are equal is 1 in 2^33. The previous release ignores the meaning of a nonce, so it can read these texts too.
_KEY_ID = 3


class WrongKey(ExpectedFailure):
    """A stored secret was encrypted with another CUOTA_SECRET_KEY."""


def derived(key: bytes, use: str) -> bytes:
    """Derive a separate key for each use, so that a hash made for one use does not fit another use."""
    return hmac.digest(key, f"cuota:{use}".encode(), "sha256")


class _Key:
    """One secret key: its id, which is not secret, and its cipher."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.id = derived(secret, "key-id")[:_KEY_ID]
        self.cipher = AESGCM(derived(secret, "encryption"))
        self.code_key = derived(secret, "code")


class Vault:
    """Encrypts with the secret key, also decrypts with old keys, and hashes with the installation's hash key.

    The hash key never changes (`flows/secret/open_vault.py`), so ids and hashes stay valid when the secret key is replaced. If
    there is no hash key, the secret key is used instead, as in earlier releases.
    """

    def __init__(
        self, secret_key: bytes, old_keys: Sequence[bytes] = (), hash_key: bytes | None = None
    ) -> None:
        self._keys = [_Key(secret) for secret in (secret_key, *old_keys)]
        self._hash_key = hash_key or secret_key
        self._hash_keys: dict[str, bytes] = {}

    @property
    def key_id(self) -> str:
        """Return the id of the key that encrypts."""
        return self._keys[0].id.hex()

    def encrypt(self, text: str, bound_to: str, *, packed: bool = False) -> bytes:
        """Encrypt a text. Decrypting requires the same `bound_to`, for example a merchant id.

        `packed` compresses the text first (`core/wire/packed_text.py`).
        """
        return self._sealed(pack(text) if packed else text.encode(), bound_to)

    def _sealed(self, plain: bytes, bound_to: str) -> bytes:
        key = self._keys[0]
        nonce = key.id + os.urandom(_NONCE - _KEY_ID)
        return nonce + key.cipher.encrypt(nonce, plain, bound_to.encode())

    def decrypt(self, stored: bytes, bound_to: str) -> str:
        """Decrypt a text. Raises WrongKey if no key fits, `bound_to` differs, or a byte was changed."""
        return unpack(self._opened(stored, bound_to)[1])

    def rewrap(self, stored: bytes, bound_to: str) -> bytes:
        """Encrypt a stored text again with the current key. A compressed text stays compressed. Raises WrongKey."""
        return self._sealed(self._opened(stored, bound_to)[1], bound_to)

    def is_current(self, stored: bytes, bound_to: str) -> bool:
        """Return whether the current key encrypted this text. Raises WrongKey if no key fits."""
        return self._opened(stored, bound_to)[0] is self._keys[0]

    def key_of(self, stored: bytes, bound_to: str) -> bytes:
        """Return the secret key that encrypted this text. Raises WrongKey if no key fits."""
        return self._opened(stored, bound_to)[0].secret

    def _opened(self, stored: bytes, bound_to: str) -> tuple[_Key, bytes]:
        # Try the key that the nonce names first. Texts of an earlier release name no key, so try all keys.
        for key in sorted(self._keys, key=lambda key: key.id != stored[:_KEY_ID]):
            try:
                plain = key.cipher.decrypt(stored[:_NONCE], stored[_NONCE:], bound_to.encode())
            except (InvalidTag, ValueError):  # a ValueError means that the text is too short
                continue
            return key, plain
        raise WrongKey(
            "CUOTA_SECRET_KEY is not the key with which this database was encrypted. Set CUOTA_SECRET_KEY to that key, or, to replace"
            " that key, set CUOTA_SECRET_KEY_OLD to it."
        )

    def hash(self, use: str, text: str) -> bytes:
        """Return the keyed SHA-256 of an id, or of a secret that is too long to guess."""
        key = self._hash_keys.get(use)
        if key is None:
            key = self._hash_keys[use] = derived(self._hash_key, use)
        return hmac.digest(key, text.encode(), "sha256")

    def code_hashes(self, text: str) -> list[bytes]:
        """Return the keyed SHA-256 of a one-time code: with the current secret key, which is used for storing, then with old keys.

        With the key, anybody could find a code by trying all codes. So codes do not use the hash key, which is never replaced.
        """
        return [hmac.digest(key.code_key, text.encode(), "sha256") for key in self._keys]

    def consumer_id(self, phone: str) -> UUID:
        """Return the id of the consumer with this number. It needs no index, and reveals nothing without the key."""
        number = int.from_bytes(self.hash("consumer", phone)[:16], "big")
        # RFC 9562 reserves version 8 for ids with a custom format.
        return UUID(int=number & ~(0xF000 << 64) & ~(0xC000 << 48) | (8 << 76) | (0x8000 << 48))
