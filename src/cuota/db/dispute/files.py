"""Stores the files of disputes, encrypted, and reads them and the statements that they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.dispute.dispute import DisputeParty
from cuota.db.session import Session

_ADD = """INSERT INTO dispute_files (merchant_id, evidence_id, number, dispute_id, name, media_type, size, content, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"""
_STATEMENTS = """SELECT e.evidence_id, e.party, e.text, e.at FROM dispute_evidence e
    WHERE e.merchant_id = $1 AND e.dispute_id = $2 ORDER BY e.at, e.evidence_id"""
# A file whose statement was never saved is left out.
_FILES = """SELECT f.evidence_id, f.number, f.name, f.media_type, f.size FROM dispute_files f
    JOIN dispute_evidence e ON e.merchant_id = $1 AND e.dispute_id = $2 AND e.evidence_id = f.evidence_id
    WHERE f.merchant_id = $1 AND f.dispute_id = $2 ORDER BY f.evidence_id, f.number"""
_REMOVE = """DELETE FROM dispute_files f WHERE f.merchant_id = $1 AND f.evidence_id = $2
    AND NOT EXISTS (SELECT FROM dispute_evidence e WHERE e.merchant_id = $1 AND e.evidence_id = $2)"""
_CONTENT = """SELECT e.party, f.name, f.media_type, f.content FROM dispute_files f
    JOIN dispute_evidence e ON e.merchant_id = $1 AND e.dispute_id = $2 AND e.evidence_id = f.evidence_id
    WHERE f.merchant_id = $1 AND f.dispute_id = $2 AND f.evidence_id = $3 AND f.number = $4"""


@dataclass(frozen=True, slots=True)
class SealedFile:
    """An encrypted file. `size` is the number of bytes before the encryption."""

    name: bytes
    media_type: str
    size: int
    content: bytes


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file without its content. `name` is encrypted."""

    evidence_id: UUID
    number: int
    name: bytes
    media_type: str
    size: int


@dataclass(frozen=True, slots=True)
class StoredStatement:
    """The statement of one party. `text` is encrypted, or None after an erasure."""

    evidence_id: UUID
    party: DisputeParty
    text: bytes | None
    at: datetime


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file with its content. `name` and `content` are encrypted."""

    party: DisputeParty
    name: bytes
    media_type: str
    content: bytes


async def add(
    session: Session,
    merchant_id: UUID,
    dispute_id: UUID,
    evidence_id: UUID,
    number: int,
    file: SealedFile,
    now: datetime,
) -> None:
    """Store one file of a statement that is saved afterwards."""
    await session.fetchrow(
        _ADD,
        merchant_id,
        evidence_id,
        number,
        dispute_id,
        file.name,
        file.media_type,
        file.size,
        file.content,
        now,
    )


async def remove_unsaved(session: Session, merchant_id: UUID, evidence_id: UUID) -> None:
    """Delete the files of a statement that was not saved."""
    await session.fetchrow(_REMOVE, merchant_id, evidence_id)


async def statements(session: Session, merchant_id: UUID, dispute_id: UUID) -> list[StoredStatement]:
    """Return the statements of the parties, the earliest first."""
    rows = await session.fetch(_STATEMENTS, merchant_id, dispute_id)
    return [
        StoredStatement(row["evidence_id"], DisputeParty(row["party"]), row["text"], row["at"])
        for row in rows
    ]


async def of_dispute(session: Session, merchant_id: UUID, dispute_id: UUID) -> list[StoredFile]:
    """Return all files of a dispute, without their contents."""
    return [StoredFile(*row) for row in await session.fetch(_FILES, merchant_id, dispute_id)]


async def content(
    session: Session, merchant_id: UUID, dispute_id: UUID, evidence_id: UUID, number: int
) -> FileContent | None:
    """Return one file with its content, or None."""
    row = await session.fetchrow(_CONTENT, merchant_id, dispute_id, evidence_id, number)
    if row is None:
        return None
    return FileContent(DisputeParty(row["party"]), row["name"], row["media_type"], row["content"])
