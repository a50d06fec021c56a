"""The vault, with the installation's hash key: ids and hashes are keyed with it, and it never changes."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence

from cuota.db import hash_key
from cuota.db.session import Session
from cuota.db.vault import Vault

BYTES = 32
BOUND_TO = "hash-key"


async def open_vault(session: Session, secret_key: bytes, old_keys: Sequence[bytes]) -> Vault:
    """Read the hash key, or make it at the first start; raises WrongKey where no secret key fits."""
    vault = Vault(secret_key, old_keys)
    sealed = await hash_key.read(session)
    if sealed is None:
        first = base64.b64encode(await _first(session, vault)).decode()
        await hash_key.add(session, vault.encrypt(first, BOUND_TO))
        sealed = await hash_key.read(session)
        assert sealed is not None
    return Vault(secret_key, old_keys, base64.b64decode(vault.decrypt(sealed, BOUND_TO)))


async def _first(session: Session, vault: Vault) -> bytes:
    """A random key. Where an earlier release has served, it hashed with its secret key, and that must go on."""
    oldest = await hash_key.oldest_signing_key(session)
    if oldest is None:
        return os.urandom(BYTES)
    key_id, sealed = oldest
    return vault.key_of(sealed, f"signing-key:{key_id}")
