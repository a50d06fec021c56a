"""Sends merchants' answers to chargebacks to the card processor, outside of any transaction."""

from __future__ import annotations

import logging
from datetime import timedelta

from cuota.core.dispute.dispute import DisputeStatus
from cuota.db.dispute import outgoing
from cuota.db.dispute.outgoing import OutgoingAnswer
from cuota.flows.context import Context
from cuota.flows.dispute.evidence import files_of, open_text
from cuota.rails.bounded import SECONDS
from cuota.rails.card.protocol import ChargebackReply
from cuota.rails.card.rails import EVIDENCE_FACTOR
from cuota.rails.unavailable import RailUnavailable

BATCH = 4
# Even the slowest rail finishes a batch before the lease of its claims ends.
assert outgoing.LEASE.total_seconds() >= BATCH * SECONDS * EVIDENCE_FACTOR
# How long to wait after the first, second, ... failed attempt; the last delay repeats.
BACKOFF = (timedelta(seconds=30), timedelta(minutes=5), timedelta(minutes=30), timedelta(hours=2))
log = logging.getLogger("cuota.work")


async def send_answers(context: Context) -> int:
    """Send the answers that are due. Return how many were claimed."""
    claimed = await outgoing.claim(context.pool, context.now(), BATCH)
    for due in claimed:
        facts = {"orderId": str(due.order_id), "disputeId": str(due.dispute_id)}
        try:
            await _send(context, due)
        except RailUnavailable as problem:
            log.warning("evidence not sent", extra={"facts": {**facts, "problem": str(problem)[:200]}})
            wait = BACKOFF[min(due.tries, len(BACKOFF)) - 1]
            await outgoing.later(context.pool, due, context.now() + wait)
        except Exception:
            # One answer that fails must not delay the others. Its lease ends, and it is retried.
            log.exception("evidence failed", extra={"facts": facts})
    return len(claimed)


async def _send(context: Context, due: OutgoingAnswer) -> None:
    if due.status != DisputeStatus.CLOSED and due.card_token is not None:
        reply = ChargebackReply(
            due.evidence_id,
            due.reference,
            due.card_token,
            open_text(context, due.evidence_id, due.text),
            tuple(await files_of(context, due.merchant_id, due.dispute_id, due.evidence_id)),
            accepts=due.status == DisputeStatus.LOST,
        )
        await context.rails.card.answer_chargeback(reply)
    await outgoing.sent(context.pool, due, context.now())
