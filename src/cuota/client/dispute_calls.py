"""Describes the calls about disputes. `calls.py` describes the other calls."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from cuota.client.calls import Again, Call, id_text, key_text, paged
from cuota.client.disputed import Dispute, DisputePage
from cuota.client.money import json_text

# A file's name and content.
EvidenceFiles = Iterable[tuple[str, bytes]]


def disputes(status: str | None, order_id: str | None, after: str | None, limit: int) -> Call[DisputePage]:
    """`GET /disputes`: one page."""
    query = paged(after, limit, status=status, orderId=order_id)
    return Call("GET", f"/disputes?{query}", DisputePage.read)


def dispute(dispute_id: str) -> Call[Dispute]:
    """`GET /disputes/{disputeId}`."""
    return Call("GET", f"/disputes/{id_text(dispute_id)}", Dispute.read)


def accept_dispute(dispute_id: str) -> Call[Dispute]:
    """`POST /disputes/{disputeId}/accept`. A second acceptance changes nothing, so a retry is safe."""
    return Call("POST", f"/disputes/{id_text(dispute_id)}/accept", Dispute.read, Again.SAME, b"{}")


def submit_evidence(dispute_id: str, text: str, files: EvidenceFiles, key: str | None) -> Call[Dispute]:
    """`POST /disputes/{disputeId}/evidence`."""
    return _written(dispute_id, "evidence", text, files, key)


def appeal(dispute_id: str, text: str, files: EvidenceFiles, key: str | None) -> Call[Dispute]:
    """`POST /disputes/{disputeId}/appeal`."""
    return _written(dispute_id, "appeal", text, files, key)


def _written(dispute_id: str, verb: str, text: str, files: EvidenceFiles, key: str | None) -> Call[Dispute]:
    encoded = []
    for name, content in files:
        if not isinstance(content, bytes):
            raise TypeError(f"The content of the file {name} must be bytes, such as path.read_bytes().")
        encoded.append({"name": name, "content": base64.b64encode(content).decode()})
    body = json_text({"text": text, "files": encoded}).encode()
    path = f"/disputes/{id_text(dispute_id)}/{verb}"
    return Call("POST", path, Dispute.read, Again.SAME, body, key_text(key))
