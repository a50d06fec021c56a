"""Opens a consumer's dispute about an order."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from cuota.core.dispute.dispute import Dispute, DisputeParty, DisputeReason
from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.dispute.open_dispute import DisputeRequest
from cuota.core.dispute.open_dispute import open_dispute as decide_open
from cuota.core.order.outcome import Outcome
from cuota.flows.context import Context
from cuota.flows.dispute.evidence import saved_or_removed, store_evidence
from cuota.flows.dispute.read_dispute import OrderWithClaims, read_claims
from cuota.flows.settle import settle


async def open_dispute(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    reason: DisputeReason,
    amount: int,
    text: str,
    files: Sequence[EvidenceFile] = (),
    party: DisputeParty = DisputeParty.CONSUMER,
) -> Dispute:
    """Open a dispute about `amount` cents and return it. Raises Refused. `party` is the operator at the command line."""
    dispute_id = context.new_id()
    before = await read_claims(context.pool, merchant_id, order_id)
    if before is not None:
        # Check this before the files are stored, so that no files are stored for an impossible dispute.
        order, plan, claims = before.order, before.plan, before.claims
        decide_open(
            order,
            plan,
            DisputeRequest(reason, amount, party),
            claims,
            dispute_id,
            context.now(),
            context.new_id,
        )
    evidence = await store_evidence(context, merchant_id, dispute_id, party, text, files)
    asked = DisputeRequest(reason, amount, party, evidence)

    def decide(found: OrderWithClaims) -> Outcome | None:
        mine = next((each for each in found.claims.disputes if each.dispute_id == dispute_id), None)
        if mine is not None:
            # Our own earlier save was applied, and we lost its result.
            return None
        return decide_open(
            found.order, found.plan, asked, found.claims, dispute_id, context.now(), context.new_id
        )

    async with saved_or_removed(context, merchant_id, evidence):
        done = await settle(context, merchant_id, order_id, decide, read_claims)
    disputes = done.outcome.disputes if done.outcome is not None else done.found.claims.disputes
    return next(each for each in disputes if each.dispute_id == dispute_id)
