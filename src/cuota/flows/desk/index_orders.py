"""Writes the search terms with which a merchant's people find orders, as keyed hashes."""

from __future__ import annotations

import logging
from uuid import UUID

from cuota.core.desk.terms import terms_of
from cuota.db.desk import terms
from cuota.db.hosts import NodeLost
from cuota.db.vault import Vault
from cuota.flows.context import Context

EVENTS_AT_ONCE = 200
log = logging.getLogger("cuota.work")


def hashed(vault: Vault, merchant_id: UUID, term: str) -> int:
    """Return the first 64 bits of a term's keyed hash. Two merchants have different hashes for the same term."""
    return int.from_bytes(vault.hash("desk-term", f"{merchant_id}:{term}")[:8], "big", signed=True)


async def index_orders(context: Context) -> int:
    """Write the terms of all merchants' new events. Return how many events were read."""
    read = 0
    for merchant_id in await terms.merchants_behind(context.pool):
        try:
            read += await index_merchant(context, merchant_id)
        except NodeLost:
            log.warning("terms wait", extra={"facts": {"merchantId": str(merchant_id)}})
        except Exception:
            # One merchant that fails must not stop the others.
            log.exception("terms failed", extra={"facts": {"merchantId": str(merchant_id)}})
    return read


async def index_merchant(context: Context, merchant_id: UUID) -> int:
    """Write the terms of one merchant's next events. Return how many events were read."""
    async with context.pool.session() as session, session.transaction():
        began = await terms.lock(session, merchant_id)
        position, order_ids = await terms.coming(session, merchant_id, began, EVENTS_AT_ONCE)
        if position == began:
            return 0
        pairs = [
            (hashed(context.vault, merchant_id, term), each.order_id)
            for each in await terms.facts(session, merchant_id, order_ids)
            for term in terms_of(each.amount, each.people, each.cards)
        ]
        await terms.add(session, merchant_id, pairs, position)
    return position - began
