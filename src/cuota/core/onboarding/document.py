"""The documents that prove a merchant's statements about its business. Their types and sizes are checked like evidence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

MOST_DOCUMENTS = 20
"""The limit for one merchant, so that nobody can fill the database."""


class DocumentKind(StrEnum):
    """What a document proves."""

    REGISTRATION = "registration"
    TAX = "tax"
    IDENTITY = "identity"
    ADDRESS = "address"
    OTHER = "other"


DOCUMENT_WORDS = {
    DocumentKind.REGISTRATION: "Registration of the business",
    DocumentKind.TAX: "Proof of the EIN",
    DocumentKind.IDENTITY: "Identity of an owner",
    DocumentKind.ADDRESS: "Proof of the address",
    DocumentKind.OTHER: "Something else",
}


@dataclass(frozen=True, slots=True)
class MerchantDocument:
    """A document without its content. `size` is in bytes; `sender` is the sender's name, as in the audit log."""

    document_id: UUID
    kind: DocumentKind
    name: str
    media_type: str
    size: int
    sender: str
    sent_at: datetime
