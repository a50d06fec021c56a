"""Opens the vault with the installation's hash key, which keys all hashes and never changes."""

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
    """Return the vault. Create the hash key at the first start. Raises WrongKey if no secret key can decrypt the hash key."""
    vault = Vault(secret_key, old_keys)
    sealed = await hash_key.read(session)
    if sealed is None:
        first = base64.b64encode(await _first(session, vault)).decode()
        await hash_key.add(session, vault.encrypt(first, BOUND_TO))
        sealed = await hash_key.read(session)
        assert sealed is not None
    return Vault(secret_key, old_keys, base64.b64decode(vault.decrypt(sealed, BOUND_TO)))


async def _first(session: Session, vault: Vault) -> bytes:
    """Return the hash key of a first start: a random key.

    An earlier release used its secret key for hashes. If one has run on this database, its hashes must stay valid.
    """
    oldest = await hash_key.oldest_signing_key(session)
    if oldest is None:
        return os.urandom(BYTES)
    key_id, sealed = oldest
    return vault.key_of(sealed, f"signing-key:{key_id}")
