"""A party's statements and files in a dispute. Callers encrypt the texts and files."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.core.dispute.dispute import DisputeParty

MOST_TEXT = 5000


@dataclass(frozen=True, slots=True)
class Evidence:
    """A statement of one side, with the encrypted text. Its files are already stored, under the same `evidence_id`.

    `outgoing`: the evidence is for a chargeback and must be sent to the card processor.
    """

    evidence_id: UUID
    dispute_id: UUID
    party: DisputeParty
    text: bytes
    outgoing: bool = False


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """A checked file: a name to show, the type of its content, and the content."""

    name: str
    media_type: str
    content: bytes
