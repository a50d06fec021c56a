"""Makes merchants whose rows are on a certain node of a Citus cluster."""

from __future__ import annotations

from uuid import UUID, uuid4

import asyncpg

from cuota.db.order import outcomes
from cuota.db.pool import Pool
from support.db.made_orders import created

MERCHANT = """INSERT INTO merchants (merchant_id, name, minimum, maximum, defer_funds_capture, profile, currency, origins,
    signing_secret, webhook_secret, created_at) VALUES ($1, $2, 1, 100, true, 'strict', 'USD', '{}', '', '', now())"""
NODE_OF = """SELECT groupid FROM pg_dist_placement
    WHERE shardid = get_shard_id_for_distribution_column('orders', $1::uuid)"""


async def merchants_on_each(operator: asyncpg.Connection, pool: Pool) -> dict[int, set[UUID]]:
    """Return merchants with an open order, by the node that stores them."""
    found: dict[int, set[UUID]] = {1: set(), 2: set()}
    while not all(found.values()):
        merchant_id = uuid4()
        await operator.execute(MERCHANT, merchant_id, str(merchant_id))
        assert await outcomes.create(pool, created(merchant_id))
        found[await operator.fetchval(NODE_OF, merchant_id)].add(merchant_id)
    return found
