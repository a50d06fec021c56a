"""The documents of merchants, encrypted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.dispute.files import SealedFile
from cuota.db.session import Session

_OF = """SELECT document_id, kind, name, media_type, size, sender, sent_at FROM merchant_documents WHERE merchant_id = $1
    ORDER BY document_id"""
_ADD = """INSERT INTO merchant_documents (merchant_id, document_id, kind, name, media_type, size, content, sender, sent_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"""
_CONTENT = "SELECT name, media_type, size, content FROM merchant_documents WHERE merchant_id = $1 AND document_id = $2"
_REMOVE = "DELETE FROM merchant_documents WHERE merchant_id = $1 AND document_id = $2 RETURNING 1"


@dataclass(frozen=True, slots=True)
class SealedDocument:
    """A document without its content. `name` is encrypted."""

    document_id: UUID
    kind: str
    name: bytes
    media_type: str
    size: int
    sender: str
    sent_at: datetime


async def read_all(session: Session, merchant_id: UUID) -> list[SealedDocument]:
    """Return the documents without their contents, the earliest first."""
    return [SealedDocument(*row) for row in await session.fetch(_OF, merchant_id)]


async def add(
    session: Session,
    merchant_id: UUID,
    document_id: UUID,
    kind: str,
    file: SealedFile,
    sender: str,
    now: datetime,
) -> None:
    """Add a document."""
    await session.fetchrow(
        _ADD, merchant_id, document_id, kind, file.name, file.media_type, file.size, file.content, sender, now
    )


async def content(session: Session, merchant_id: UUID, document_id: UUID) -> SealedFile | None:
    """Return a document with its content, or None."""
    row = await session.fetchrow(_CONTENT, merchant_id, document_id)
    return None if row is None else SealedFile(*row)


async def remove(session: Session, merchant_id: UUID, document_id: UUID) -> bool:
    """Delete a document. Return False if there is no document with this id."""
    return await session.fetchrow(_REMOVE, merchant_id, document_id) is not None
