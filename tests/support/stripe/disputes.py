"""Disputes and files of the stand-in for Stripe, because localstripe has neither."""

from __future__ import annotations

import email
import email.policy
import secrets
import time
from typing import Any

from support.stripe.intents import Answer, missing
from support.stripe.ledger import Json, Ledger
from support.stripe.upstream import Pairs

RESPOND_WITHIN = 9 * 86400
FILE_MOST, FILES_MOST = 5 * 2**20, 4_500_000
TEXT_MOST = 20_000
FILE_FIELDS = frozenset(
    {
        "uncategorized_file",
        "receipt",
        "shipping_documentation",
        "customer_communication",
        "service_documentation",
    }
)
# The first bytes of the file types that Stripe accepts as evidence. The file's name does not matter.
_TAKEN = {b"%PDF": "pdf", b"\x89PNG": "png", b"\xff\xd8\xff": "jpg"}


def refused(message: str, param: str | None = None) -> Answer:
    """Stripe's error for a request that it cannot carry out."""
    return 400, {"error": {"type": "invalid_request_error", "message": message, "param": param}}


class Disputes:
    """Implements docs.stripe.com/api/disputes and docs.stripe.com/file-upload."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.disputes: dict[str, Json] = {}
        self.files: dict[str, tuple[str, bytes]] = {}

    def open(self, intent: Json) -> Json:
        """Let the card's bank dispute a payment, and take the money back."""
        dispute: Json = {
            "id": f"dp_{secrets.token_hex(8)}", "object": "dispute", "amount": intent["amount"],
            "currency": intent["currency"], "reason": "product_not_received", "status": "needs_response",
            "metadata": {}, "payment_intent": intent["id"], "evidence": {},
            "evidence_details": {"due_by": int(time.time()) + RESPOND_WITHIN, "submission_count": 0},
        }  # fmt: skip
        self.disputes[dispute["id"]] = dispute
        self._ledger.happened("charge.dispute.created", dispute)
        return dispute

    def decide(self, dispute_id: str, status: str) -> None:
        """Let the card network decide the dispute: won or lost."""
        self.disputes[dispute_id]["status"] = status
        self._ledger.happened("charge.dispute.closed", self.disputes[dispute_id])

    def read(self, dispute_id: str) -> Answer:
        """GET /v1/disputes/{id}."""
        found = self.disputes.get(dispute_id)
        return missing("dispute") if found is None else (200, found)

    def post(self, rest: str, pairs: Pairs) -> Answer:
        """POST /v1/disputes/{id} and /v1/disputes/{id}/close."""
        dispute_id, _, verb = rest.partition("/")
        dispute = self.disputes.get(dispute_id)
        if dispute is None:
            return missing("dispute")
        if dispute["status"] != "needs_response":
            return refused("This dispute is already closed or its evidence was submitted.")
        if verb == "close":
            self.decide(dispute_id, "lost")
            return 200, dispute
        given = dict(pairs)
        evidence = {
            name.removeprefix("evidence[").removesuffix("]"): value
            for name, value in given.items()
            if name.startswith("evidence[")
        }
        if problem := self._problem(evidence):
            return problem
        dispute["evidence"].update(evidence)
        if given.get("submit", "true").lower() == "true":
            dispute["status"] = "under_review"
            dispute["evidence_details"]["submission_count"] += 1
            self._ledger.happened("charge.dispute.updated", dispute)
        return 200, dispute

    def _problem(self, evidence: dict[str, str]) -> Answer | None:
        if len(evidence.get("uncategorized_text", "")) > TEXT_MOST:
            return refused("The text is too long.", "evidence[uncategorized_text]")
        names = [name for name in evidence if name != "uncategorized_text"]
        for name in names:
            if name not in FILE_FIELDS or evidence[name] not in self.files:
                return refused("No such file upload", f"evidence[{name}]")
        if sum(len(self.files[evidence[name]][1]) for name in names) > FILES_MOST:
            return refused("The combined size of the files is too large.", "evidence")
        return None

    def upload(self, parts: dict[str, tuple[str | None, bytes]]) -> Answer:
        """POST /v1/files."""
        name, content = parts.get("file", (None, b""))
        if name is None or parts.get("purpose", (None, b""))[1] != b"dispute_evidence":
            return refused("Invalid file: a file with a name and a purpose is required", "file")
        kind = next((kind for start, kind in _TAKEN.items() if content.startswith(start)), None)
        if kind is None or len(content) > FILE_MOST:
            return refused("Stripe takes PDF, JPEG and PNG files up to 5 MB as evidence", "file")
        file_id = f"file_{secrets.token_hex(8)}"
        self.files[file_id] = name, content
        made: dict[str, Any] = {
            "id": file_id,
            "object": "file",
            "purpose": "dispute_evidence",
            "size": len(content),
        }
        return 200, {**made, "filename": name, "type": kind}


def multipart(content_type: str, body: bytes) -> dict[str, tuple[str | None, bytes]]:
    """Read a form with files: the file name and the content of each field."""
    head = f"Content-Type: {content_type}\r\nMIME-Version: 1.0\r\n\r\n".encode()
    read = email.message_from_bytes(head + body, policy=email.policy.HTTP)
    parts: dict[str, tuple[str | None, bytes]] = {}
    for part in read.iter_parts():
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        parts[str(part.get_param("name", header="content-disposition"))] = part.get_filename(), content
    return parts
