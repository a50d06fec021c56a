"""Answers to disputes at Stripe: evidence with files, or acceptance."""

from __future__ import annotations

import io
from collections.abc import Sequence

import stripe

from cuota.core.dispute.evidence import EvidenceFile
from cuota.rails.card.protocol import ChargebackReply
from cuota.rails.card.stripe_calls import answered
from cuota.rails.unavailable import RailUnavailable

# The fields of a dispute's evidence that accept files, in this order. Each accepts one file.
FILE_FIELDS = (
    "uncategorized_file",
    "receipt",
    "shipping_documentation",
    "customer_communication",
    "service_documentation",
)
# The file types that Stripe accepts as evidence, and the largest total size in bytes.
FILE_TYPES = frozenset({"application/pdf", "image/jpeg", "image/png"})
FILES_MOST = 4_500_000
TEXT_MOST = 20_000
# A dispute in one of these states accepts an answer.
_TAKES_ANSWERS = frozenset({"needs_response", "warning_needs_response"})


class _Upload(io.BytesIO):
    """A file with a name, as Stripe's library wants it."""

    def __init__(self, file: EvidenceFile) -> None:
        super().__init__(file.content)
        self.name = file.name


async def answer_dispute(client: stripe.StripeClient, reply: ChargebackReply) -> None:
    """Send evidence, or accept.

    Does nothing if the dispute is closed or was answered before, because Stripe accepts one answer.
    """
    found = await answered(client.v1.disputes.retrieve_async(reply.reference))
    if found.to_dict()["status"] not in _TAKES_ANSWERS:
        return
    options: stripe.RequestOptions = {"idempotency_key": str(reply.key)}
    passed = (stripe.InvalidRequestError,)
    try:
        if reply.accepts:
            await answered(client.v1.disputes.close_async(reply.reference, {}, options), passed)
            return
        attached, left_out = _attachable(reply.files)
        evidence = {"uncategorized_text": _text(reply, left_out)}
        for number, (name, file) in enumerate(zip(FILE_FIELDS, attached, strict=False), 1):
            stored = await answered(
                client.v1.files.create_async(
                    {"purpose": "dispute_evidence", "file": _Upload(file)},
                    {"idempotency_key": f"{reply.key}-{number}"},
                ),
                passed,
            )
            evidence[name] = stored.to_dict()["id"]
        params: stripe.params.DisputeUpdateParams = {"evidence": evidence, "submit": True}  # type: ignore[typeddict-item]
        await answered(client.v1.disputes.update_async(reply.reference, params, options), passed)
    except stripe.InvalidRequestError as problem:
        raise RailUnavailable(f"Stripe: InvalidRequestError, {problem.code}") from None


def _attachable(files: Sequence[EvidenceFile]) -> tuple[list[EvidenceFile], list[EvidenceFile]]:
    """Return the files that Stripe accepts, and the others. With one of those, Stripe would refuse the whole evidence."""
    attached: list[EvidenceFile] = []
    left_out: list[EvidenceFile] = []
    size = 0
    for file in files:
        fits = file.media_type in FILE_TYPES and size + len(file.content) <= FILES_MOST
        fits = fits and len(attached) < len(FILE_FIELDS)
        (attached if fits else left_out).append(file)
        size += len(file.content) if fits else 0
    return attached, left_out


def _text(reply: ChargebackReply, left_out: Sequence[EvidenceFile]) -> str:
    """Return the merchant's text, the text of plain text files, and the names of the files that are not attached."""
    parts = [reply.text]
    if missing := [file.name for file in left_out if file.media_type != "text/plain"]:
        parts.append(f"Not attached: {', '.join(missing)}")
    parts += [
        f"{file.name}:\n{file.content.decode(errors='replace')}"
        for file in left_out
        if file.media_type == "text/plain"
    ]
    return "\n\n".join(part for part in parts if part)[:TEXT_MOST]
