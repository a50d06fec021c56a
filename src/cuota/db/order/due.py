"""Finds the orders of all merchants with due work: a charge to look up, a payment, a reminder, a checkout that timed out."""

from __future__ import annotations

import contextlib
import random
from datetime import datetime
from uuid import UUID

from cuota.db.cluster.across import merchants_with_backlog
from cuota.db.hosts import NodeLost
from cuota.db.session import Session

# When more orders may be due than one read returns, also take EACH orders from each of SOME_MERCHANTS random merchants. So a merchant
# with very many due orders does not delay the others.
SOME_MERCHANTS, EACH = 20, 5

_OLDEST = "SELECT merchant_id, order_id FROM orders WHERE due_at <= $1 ORDER BY due_at LIMIT $2"
_MERCHANTS = "SELECT DISTINCT merchant_id FROM orders WHERE due_at <= $1"
_OF_MERCHANT = """
SELECT order_id FROM orders WHERE merchant_id = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3
"""
# This is not a decision: it only moves `due_at` a little later. The next saved outcome computes `due_at` again.
_ASIDE = "UPDATE orders SET due_at = $4 WHERE merchant_id = $1 AND order_id = $2 AND due_at <= $3"


async def due_orders(session: Session, now: datetime, limit: int) -> list[tuple[UUID, UUID]]:
    """Return orders with due work, as (merchant id, order id): the oldest of all merchants, at most `limit`, in random order.

    If more may be due, or a node of a cluster is down, also return the oldest few orders of each of some merchants. The random
    order makes the processes that settle due orders begin with different ones.
    """
    try:
        oldest = await session.fetch(_OLDEST, now, limit)
        more = len(oldest) == limit
    except NodeLost:
        oldest, more = [], True
    found = {(row["merchant_id"], row["order_id"]) for row in oldest}
    if more:
        merchants = await merchants_with_backlog(session, _MERCHANTS, now)
        chosen = random.sample(merchants, min(SOME_MERCHANTS, len(merchants)))
        # If the first read failed, the chosen merchants share the whole limit.
        each = EACH if oldest else max(EACH, limit // max(1, len(chosen)))
        for merchant_id in chosen:
            # Skip merchants whose node has just gone down.
            with contextlib.suppress(NodeLost):
                rows = await session.fetch(_OF_MERCHANT, merchant_id, now, each)
                found |= {(merchant_id, row["order_id"]) for row in rows}
    shuffled = list(found)
    random.shuffle(shuffled)
    return shuffled


async def step_aside(
    session: Session, merchant_id: UUID, order_id: UUID, now: datetime, until: datetime
) -> None:
    """Postpone an order that could not be settled, so that it does not block other orders."""
    await session.fetchrow(_ASIDE, merchant_id, order_id, now, until)
