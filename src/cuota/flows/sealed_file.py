"""Encrypts a file and its name, and decrypts them, in a thread, so that the process can answer other requests."""

from __future__ import annotations

import asyncio
import base64

from cuota.core.dispute.evidence import EvidenceFile
from cuota.db.dispute.files import SealedFile
from cuota.db.vault import Vault

# What the name and the content of a file are bound to.
FileKeys = tuple[str, str]


async def seal_file(vault: Vault, file: EvidenceFile, keys: FileKeys) -> SealedFile:
    """Return the file with its name and content encrypted."""
    return await asyncio.to_thread(_sealed, vault, file, keys)


def _sealed(vault: Vault, file: EvidenceFile, keys: FileKeys) -> SealedFile:
    return SealedFile(
        vault.encrypt(file.name, keys[0]),
        file.media_type,
        len(file.content),
        vault.encrypt(base64.b64encode(file.content).decode(), keys[1]),
    )


async def open_file(
    vault: Vault, name: bytes, media_type: str, content: bytes, keys: FileKeys
) -> EvidenceFile:
    """Return the file. Raises WrongKey."""
    return await asyncio.to_thread(_opened, vault, name, media_type, content, keys)


def _opened(vault: Vault, name: bytes, media_type: str, content: bytes, keys: FileKeys) -> EvidenceFile:
    opened = base64.b64decode(vault.decrypt(content, keys[1]))
    return EvidenceFile(vault.decrypt(name, keys[0]), media_type, opened)
