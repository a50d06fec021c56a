"""Money goes back to cards: claimed jobs, asked of the rail under their own key, recorded in the ledger."""

from __future__ import annotations

from datetime import timedelta

from cuota.core.card_refund import settle_card_refund
from cuota.core.outcome import CardRefund, Outcome
from cuota.db import charges, orders
from cuota.db.charges import DueRefund
from cuota.db.orders import Found, Session
from cuota.flows.context import Context
from cuota.flows.settle import settle
from cuota.rails.card import RailUnavailable

BATCH = 50
LONGEST_WAIT = timedelta(hours=1)


async def return_money(context: Context) -> int:
    """Work off what is due; answers how many were claimed."""
    claimed = await charges.claim_refunds(context.pool, context.now(), BATCH)
    for due in claimed:
        await _return_one(context, due)
    return len(claimed)


async def _return_one(context: Context, due: DueRefund) -> None:
    asked = CardRefund(due.card_refund_id, due.charge_id, due.amount)
    try:
        answer = await context.rails.card.refund(asked.card_refund_id, asked.charge_id, asked.amount)
    except RailUnavailable as problem:
        # The same key again is safe: the rail acts once a key.
        wait = min(timedelta(seconds=10) * 2 ** min(due.tries, 10), LONGEST_WAIT)
        await charges.try_again(context.pool, due, context.now() + wait, str(problem)[:200])
        return
    reason = None if answer.approved else answer.reason or "declined"

    async def read(session: Session) -> Found | None:
        return await orders.read_with_plan(session, due.merchant_id, due.order_id)

    def decide(found: Found) -> Outcome:
        return settle_card_refund(found.order, asked, reason, context.now())

    await settle(context, due.merchant_id, due.order_id, read, decide)
