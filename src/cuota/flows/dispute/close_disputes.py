"""Takes the next step of disputes when their deadlines come.

Reminds merchants of deadlines, decides disputes that were not answered in time, and closes disputes whose decision is
final.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from cuota.core.dispute import answer
from cuota.core.dispute.close_dispute import close_dispute
from cuota.core.dispute.dispute import Dispute, DisputeKind, DisputeStatus
from cuota.core.order.outcome import Outcome
from cuota.core.refusal import Refused
from cuota.db.dispute import disputes
from cuota.db.dispute.disputes import DueDispute
from cuota.db.pool import GONE
from cuota.flows.context import Context
from cuota.flows.dispute.read_dispute import DisputedOrder, reading
from cuota.flows.settle import settle

BATCH = 100
log = logging.getLogger("cuota.work")


async def settle_due_disputes(context: Context) -> int:
    """Do the due work of disputes. Return how many were changed."""
    done = 0
    for due in await disputes.due(context.pool, context.now(), BATCH):
        facts = {"orderId": str(due.order_id), "disputeId": str(due.dispute_id)}
        try:
            done += await _settle_one(context, due)
        except (Refused, *GONE):
            log.warning("dispute waits", extra={"facts": facts})
        except Exception:
            # One dispute that fails must not stop the others.
            log.exception("dispute failed", extra={"facts": facts})
    return done


async def _settle_one(context: Context, due: DueDispute) -> bool:
    def decide(read: DisputedOrder) -> Outcome | None:
        return _next_step(context, read)

    done = await settle(context, due.merchant_id, due.order_id, decide, reading(due.dispute_id))
    return done.outcome is not None


def _next_step(context: Context, read: DisputedOrder) -> Outcome | None:
    dispute, now = read.dispute, context.now()
    if dispute.due_at is None or dispute.due_at > now:
        return None
    if dispute.status is DisputeStatus.OPEN:
        return _open_step(context, read, dispute)
    return close_dispute(read.order, read.plan, dispute, read.claims, read.fees, now, context.new_id)


def _open_step(context: Context, read: DisputedOrder, dispute: Dispute) -> Outcome | None:
    now = context.now()
    if not dispute.is_late(now):
        return answer.remind(read.order, dispute, now)
    if dispute.kind is DisputeKind.DISPUTE:
        return answer.decide(read.order, dispute, "expire", read.claims.zone, now, context.new_id)
    # The card network decides. After its deadline, for example after an outage, a reminder would come too late.
    return Outcome(order=read.order, disputes=(replace(dispute, reminded=True),), at=now)
