"""Stores the texts and files of a dispute's parties, encrypted, and decrypts them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.dispute.dispute import DisputeParty
from cuota.core.dispute.evidence import MOST_TEXT, Evidence, EvidenceFile
from cuota.core.refusal import Code, FieldError, Refused
from cuota.db.dispute import files as stored
from cuota.flows.context import Context
from cuota.flows.sealed_file import FileKeys, open_file, seal_file

# One side can send at most this many statements in a dispute, so that nobody can fill the database.
MOST_STATEMENTS = 20


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file of a statement, without its content. `size` is in bytes."""

    number: int
    name: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True)
class Statement:
    """The statement of one party, with its files. `text` is None after an erasure."""

    evidence_id: UUID
    party: DisputeParty
    text: str | None
    at: datetime
    files: tuple[ShownFile, ...]


async def store_evidence(
    context: Context,
    merchant_id: UUID,
    dispute_id: UUID,
    party: DisputeParty,
    text: str,
    files: Sequence[EvidenceFile] = (),
    *,
    outgoing: bool = False,
    once: bool = False,
) -> Evidence:
    """Store the files, and return the evidence to save with the dispute. Raises Refused if there is neither text nor file.

    `once`: an appeal or an acceptance. It is possible only once, and is allowed even after MOST_STATEMENTS.
    """
    text = text.strip()
    if not text and not files:
        message = "Write what happened, or attach a file."
        raise Refused(Code.VALIDATION_FAILED, message, errors=(FieldError("text", "required", message),))
    if len(text) > MOST_TEXT:
        message = f"The text has {len(text)} characters; at most {MOST_TEXT} are possible."
        raise Refused(Code.VALIDATION_FAILED, message, errors=(FieldError("text", "too_long", message),))
    earlier = () if once else await stored.statements(context.pool, merchant_id, dispute_id)
    if sum(each.party is party for each in earlier) >= MOST_STATEMENTS:
        raise Refused(
            Code.DISPUTE_STATE,
            f"You have sent {MOST_STATEMENTS} statements in this dispute already; nothing more can be added.",
        )
    evidence_id, vault = context.new_id(), context.vault
    for number, file in enumerate(files, 1):
        sealed = await seal_file(vault, file, _keys(evidence_id, number))
        await stored.add(context.pool, merchant_id, dispute_id, evidence_id, number, sealed, context.now())
    return Evidence(evidence_id, dispute_id, party, vault.encrypt(text, _text_key(evidence_id)), outgoing)


@asynccontextmanager
async def saved_or_removed(
    context: Context, merchant_id: UUID, evidence: Evidence | None
) -> AsyncIterator[None]:
    """Delete the statement's files if the block refuses to save the statement, because no erasure would find them."""
    try:
        yield
    except Refused as refused:
        # After this refusal, the statement may still have been saved.
        if evidence is not None and refused.code is not Code.UNAVAILABLE:
            await stored.remove_unsaved(context.pool, merchant_id, evidence.evidence_id)
        raise


async def statements(context: Context, merchant_id: UUID, dispute_id: UUID) -> list[Statement]:
    """Return all statements of a dispute with their files, the earliest first."""
    vault = context.vault
    files = await stored.of_dispute(context.pool, merchant_id, dispute_id)
    return [
        Statement(
            each.evidence_id,
            each.party,
            None if each.text is None else vault.decrypt(each.text, _text_key(each.evidence_id)),
            each.at,
            tuple(
                ShownFile(
                    file.number,
                    vault.decrypt(file.name, _keys(file.evidence_id, file.number)[0]),
                    file.media_type,
                    file.size,
                )
                for file in files
                if file.evidence_id == each.evidence_id
            ),
        )
        for each in await stored.statements(context.pool, merchant_id, dispute_id)
    ]


async def read_file(
    context: Context, merchant_id: UUID, dispute_id: UUID, evidence_id: UUID, number: int
) -> tuple[DisputeParty, EvidenceFile] | None:
    """Return one file and the party that sent it, or None."""
    found = await stored.content(context.pool, merchant_id, dispute_id, evidence_id, number)
    if found is None:
        return None
    keys = _keys(evidence_id, number)
    return found.party, await open_file(context.vault, found.name, found.media_type, found.content, keys)


async def files_of(
    context: Context, merchant_id: UUID, dispute_id: UUID, evidence_id: UUID
) -> list[EvidenceFile]:
    """Return the files of one statement, with their contents."""
    numbers = [
        each.number
        for each in await stored.of_dispute(context.pool, merchant_id, dispute_id)
        if each.evidence_id == evidence_id
    ]
    found = [await read_file(context, merchant_id, dispute_id, evidence_id, number) for number in numbers]
    return [each[1] for each in found if each is not None]


async def was_sent(
    context: Context,
    merchant_id: UUID,
    dispute_id: UUID,
    party: DisputeParty,
    text: str,
    files: Sequence[EvidenceFile],
) -> bool:
    """Return whether the latest statement of this party is the same: its form was sent again, because the answer was lost."""
    own = [each for each in await statements(context, merchant_id, dispute_id) if each.party is party]
    if not own or own[-1].text != text.strip() or len(own[-1].files) != len(files):
        return False
    return not files or await files_of(context, merchant_id, dispute_id, own[-1].evidence_id) == list(files)


def open_text(context: Context, evidence_id: UUID, text: bytes | None) -> str:
    """Return the text of a statement; empty after an erasure."""
    return "" if text is None else context.vault.decrypt(text, _text_key(evidence_id))


def _text_key(evidence_id: UUID) -> str:
    return f"dispute-evidence:{evidence_id}"


def _keys(evidence_id: UUID, number: int) -> FileKeys:
    return f"dispute-file-name:{evidence_id}:{number}", f"dispute-file:{evidence_id}:{number}"
