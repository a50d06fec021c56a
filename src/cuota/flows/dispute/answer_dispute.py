"""The steps of the parties and the operator in a dispute: evidence, acceptance, decision, appeal, withdrawal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from cuota.core.dispute import answer
from cuota.core.dispute.close_dispute import withdraw as decide_withdraw
from cuota.core.dispute.dispute import (
    Dispute,
    DisputeKind,
    DisputeOutcome,
    DisputeParty,
    DisputeStatus,
    dispute_edge,
)
from cuota.core.dispute.evidence import Evidence, EvidenceFile
from cuota.core.order.outcome import Outcome
from cuota.db.dispute import disputes
from cuota.flows.context import Context
from cuota.flows.dispute.evidence import saved_or_removed, store_evidence
from cuota.flows.dispute.read_dispute import DisputedOrder, dispute_not_found, order_of, reading
from cuota.flows.settle import settle

# The text that is sent to the card processor when the merchant accepts a chargeback.
ACCEPTED = "The merchant accepts the chargeback."
DecideDispute = Callable[[DisputedOrder], Outcome | None]


async def submit_evidence(
    context: Context, merchant_id: UUID, dispute_id: UUID, text: str, files: Sequence[EvidenceFile] = ()
) -> Dispute:
    """Add the merchant's evidence. For a chargeback, it is also sent to the card processor. Raises Refused."""
    found = await disputes.find(context.pool, merchant_id, dispute_id)
    if found is None:
        raise dispute_not_found()
    # Check this before the files are stored, so that no files are stored for a dispute that accepts no evidence.
    dispute_edge(found.dispute, "submit")
    outgoing = found.dispute.kind is DisputeKind.CHARGEBACK
    evidence = await store_evidence(
        context, merchant_id, dispute_id, DisputeParty.MERCHANT, text, files, outgoing=outgoing
    )
    return await _settle(
        context,
        merchant_id,
        dispute_id,
        lambda read: answer.submit_evidence(read.order, read.dispute, evidence, context.now()),
        evidence,
    )


async def add_statement(
    context: Context, merchant_id: UUID, dispute_id: UUID, text: str, files: Sequence[EvidenceFile] = ()
) -> Dispute:
    """Add the consumer's text or files. Raises Refused."""
    found = await disputes.find(context.pool, merchant_id, dispute_id)
    if found is None:
        raise dispute_not_found()
    answer.require_addable(found.dispute)
    evidence = await store_evidence(context, merchant_id, dispute_id, DisputeParty.CONSUMER, text, files)
    return await _settle(
        context,
        merchant_id,
        dispute_id,
        lambda read: answer.add_statement(read.order, read.dispute, evidence, context.now()),
        evidence,
    )


def accepted_before(dispute: Dispute) -> bool:
    """Return whether an acceptance would change nothing."""
    lost = dispute.status is DisputeStatus.LOST or dispute.outcome is DisputeOutcome.LOST
    # Only an acceptance makes a decision final without an appeal.
    return dispute.final and (lost or dispute.appealed_at is None)


async def accept_dispute(context: Context, merchant_id: UUID, dispute_id: UUID) -> Dispute:
    """Accept for the merchant: the dispute is lost, and the next run of the job refunds the consumer. Raises Refused.

    A second acceptance changes nothing, even after the dispute was closed. The acceptance of a chargeback is sent to
    the card processor.
    """
    found = await disputes.find(context.pool, merchant_id, dispute_id)
    if found is None:
        raise dispute_not_found()
    evidence = None
    if found.dispute.kind is DisputeKind.CHARGEBACK and not found.dispute.final:
        evidence = await store_evidence(
            context, merchant_id, dispute_id, DisputeParty.MERCHANT, ACCEPTED, outgoing=True, once=True
        )

    def decide(read: DisputedOrder) -> Outcome | None:
        if accepted_before(read.dispute):
            return None
        return answer.decide(
            read.order, read.dispute, "accept", read.claims.zone, context.now(), context.new_id, evidence
        )

    return await _settle(context, merchant_id, dispute_id, decide, evidence)


async def decide_dispute(
    context: Context, merchant_id: UUID, dispute_id: UUID, *, for_consumer: bool
) -> Dispute:
    """Decide as the operator. Raises Refused."""
    move = "decide_for_consumer" if for_consumer else "decide_for_merchant"
    return await _settle(
        context,
        merchant_id,
        dispute_id,
        lambda read: answer.decide(
            read.order, read.dispute, move, read.claims.zone, context.now(), context.new_id
        ),
    )


async def appeal_dispute(
    context: Context,
    merchant_id: UUID,
    dispute_id: UUID,
    party: DisputeParty,
    text: str,
    files: Sequence[EvidenceFile] = (),
) -> Dispute:
    """Appeal for the losing side. Raises Refused."""
    found = await disputes.find(context.pool, merchant_id, dispute_id)
    if found is None:
        raise dispute_not_found()
    answer.require_appeal(found.dispute, party, context.now())
    evidence = await store_evidence(context, merchant_id, dispute_id, party, text, files, once=True)
    return await _settle(
        context,
        merchant_id,
        dispute_id,
        lambda read: answer.appeal(read.order, read.dispute, party, evidence, context.now(), context.new_id),
        evidence,
    )


async def withdraw_dispute(context: Context, merchant_id: UUID, dispute_id: UUID) -> Dispute:
    """Withdraw the consumer's dispute. A second withdrawal changes nothing. Raises Refused."""

    def decide(read: DisputedOrder) -> Outcome | None:
        if not read.dispute.is_open:
            return None
        return decide_withdraw(
            read.order, read.plan, read.dispute, read.claims, context.now(), context.new_id
        )

    return await _settle(context, merchant_id, dispute_id, decide)


async def _settle(
    context: Context,
    merchant_id: UUID,
    dispute_id: UUID,
    decide: DecideDispute,
    evidence: Evidence | None = None,
) -> Dispute:
    order_id = await order_of(context.pool, merchant_id, dispute_id)

    def decide_once(read: DisputedOrder) -> Outcome | None:
        # If our own save was applied and we lost its result, the statement is already stored.
        return None if evidence is not None and evidence.evidence_id in read.written else decide(read)

    async with saved_or_removed(context, merchant_id, evidence):
        done = await settle(context, merchant_id, order_id, decide_once, reading(dispute_id))
    if done.outcome is None:
        return done.found.dispute
    return next(each for each in done.outcome.disputes if each.dispute_id == dispute_id)
