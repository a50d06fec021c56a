"""Stores, opens and removes a merchant's documents, which are encrypted like the evidence of a dispute."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.onboarding.checklist import Item
from cuota.core.onboarding.document import MOST_DOCUMENTS, DocumentKind
from cuota.core.onboarding.problem import BadOnboarding
from cuota.db.onboarding import merchant_documents
from cuota.flows.context import Context
from cuota.flows.desk.record import Actor
from cuota.flows.onboarding.change_checklist import Hand, changing
from cuota.flows.sealed_file import FileKeys, open_file, seal_file

ACCEPTED = "The payment provider has accepted this document and keeps it. Send another one beside it, if it has changed."


async def add_documents(
    context: Context, merchant_id: UUID, hand: Hand, kind: DocumentKind, files: Sequence[EvidenceFile]
) -> None:
    """Store documents whose types and sizes were checked before. Raises BadOnboarding."""
    if not files:
        raise BadOnboarding.of("Choose a file.", "files")
    # The documents are encrypted before the transaction, so that other people wait less for its lock.
    sealed = [(context.new_id(), file) for file in files]
    kept = [
        (document_id, await seal_file(context.vault, file, _keys(document_id)))
        for document_id, file in sealed
    ]
    async with changing(context, merchant_id, hand.actor) as (session, before):
        if len(before.facts.documents) + len(files) > MOST_DOCUMENTS:
            raise BadOnboarding.of(
                f"At most {MOST_DOCUMENTS} documents are kept. Remove one that is not needed.", "files"
            )
        for document_id, file in kept:
            await merchant_documents.add(
                session, merchant_id, document_id, kind, file, hand.words, context.now()
            )
        count = "1 document" if len(files) == 1 else f"{len(files)} documents"
        await hand.record(context, session, merchant_id, "onboarding.document.add", f"{count}: {kind}")


async def read_document(context: Context, merchant_id: UUID, document_id: UUID) -> EvidenceFile | None:
    """Return a document with its content, or None."""
    found = await merchant_documents.content(context.pool, merchant_id, document_id)
    if found is None:
        return None
    return await open_file(context.vault, found.name, found.media_type, found.content, _keys(document_id))


async def remove_document(context: Context, merchant_id: UUID, hand: Hand, document_id: UUID) -> None:
    """Delete a document. A merchant cannot delete an accepted document. A second click changes nothing."""
    async with changing(context, merchant_id, hand.actor) as (session, before):
        decision = before.facts.decisions.get(Item.DOCUMENTS)
        accepted = decision is not None and decision.accepted and document_id.hex in decision.about
        if accepted and isinstance(hand.actor, Actor):
            raise BadOnboarding.of(ACCEPTED)
        if await merchant_documents.remove(session, merchant_id, document_id):
            await hand.record(
                context, session, merchant_id, "onboarding.document.remove", f"Document {document_id}"
            )


def _keys(document_id: UUID) -> FileKeys:
    return f"merchant-document-name:{document_id}", f"merchant-document:{document_id}"
