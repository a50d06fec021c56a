"""A merchant's actions in a dispute: `POST /disputes/{disputeId}/accept`, `/evidence` and `/appeal`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.dispute.dispute import DisputeParty
from cuota.db.order.documents import encode
from cuota.flows.context import Context
from cuota.flows.dispute.answer_dispute import accept_dispute, appeal_dispute, submit_evidence
from cuota.flows.dispute.read_dispute import order_of
from cuota.flows.dispute.show_dispute import show_dispute
from cuota.flows.lost_session import until_known
from cuota.web import idempotent
from cuota.web.api.dispute_json import dispute_detail
from cuota.web.api.disputes import dispute_id_of
from cuota.web.api.evidence_body import MOST_EVIDENCE_BYTES, EvidenceBody, read_evidence
from cuota.web.body import parse_object, read_bytes, require_json
from cuota.web.service import merchant_of, service_of
from cuota.web.upload import upload_place

UNKNOWN = "The database does not answer, and your call may have been applied. Read the dispute before you try again."
Write = Callable[[Context, UUID, UUID, EvidenceBody], Awaitable[object]]


async def accept(request: Request) -> Response:
    """Accept a dispute: the consumer gets the money back. A second acceptance gets the same answer."""
    merchant = await merchant_of(request)
    dispute_id, context = dispute_id_of(request), service_of(request).context

    async def act() -> bytes:
        await accept_dispute(context, merchant.merchant_id, dispute_id)
        return await _shown(context, merchant.merchant_id, dispute_id)

    body = await read_bytes(request)
    return await idempotent.answer_plain(request, merchant.merchant_id, body, act, secret=True)


async def evidence(request: Request) -> Response:
    """Send evidence. More can follow until the dispute is decided."""

    async def write(context: Context, merchant_id: UUID, dispute_id: UUID, body: EvidenceBody) -> object:
        return await submit_evidence(context, merchant_id, dispute_id, body.text, body.files)

    return await _written(request, write)


async def appeal(request: Request) -> Response:
    """Appeal a decision for the consumer, once."""

    async def write(context: Context, merchant_id: UUID, dispute_id: UUID, body: EvidenceBody) -> object:
        party = DisputeParty.MERCHANT
        return await appeal_dispute(context, merchant_id, dispute_id, party, body.text, body.files)

    return await _written(request, write)


async def _written(request: Request, write: Write) -> Response:
    merchant = await merchant_of(request)
    require_json(request)
    dispute_id, context = dispute_id_of(request), service_of(request).context
    async with upload_place(merchant.merchant_id):
        body = await read_bytes(request, MOST_EVIDENCE_BYTES)

        async def act() -> bytes:
            await order_of(context.pool, merchant.merchant_id, dispute_id)
            # Decode in a thread, so that the process answers other requests while it decodes up to 14 MiB.
            given = await asyncio.to_thread(lambda: read_evidence(parse_object(body)))
            await write(context, merchant.merchant_id, dispute_id, given)
            return await _shown(context, merchant.merchant_id, dispute_id, given.warnings)

        # The answer repeats the consumer's text, so a stored answer is encrypted.
        return await idempotent.answer_plain(request, merchant.merchant_id, body, act, secret=True)


async def _shown(
    context: Context, merchant_id: UUID, dispute_id: UUID, warnings: list[dict[str, str]] | None = None
) -> bytes:
    # The call had its effect. A refusal here would free the Idempotency-Key, and a retry would have the effect again.
    shown = await until_known(
        context, lambda: show_dispute(context, merchant_id, dispute_id), UNKNOWN, lost=True
    )
    content = dispute_detail(shown)
    return encode({**content, "warnings": warnings} if warnings else content)
