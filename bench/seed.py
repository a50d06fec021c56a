"""Makes the pool of approved orders. One order goes through the hosted checkout; its rows are then copied under other ids.

So every order holds exactly what the service writes: order, document, plan, installments, charge, ledger, events,
decision. `cuota verify` checks all of them at the end of the run.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import asyncpg
import httpx

from bench.work import ORDER_JSON, POOL_PREFIX, order_id_sql
from cuota.commands.checkout_walker import walk

# Messages to merchants and consumers are sent only for the first order; the copies have none. A browser knows one
# order only.
_COLUMNS = """
SELECT table_name, array_agg(column_name::text) AS columns, array_agg(data_type::text) AS types
FROM information_schema.columns c WHERE table_schema = 'public'
    AND table_name NOT IN ('feed', 'outbox', 'deliveries', 'delivery_attempts', 'messages', 'remembered_browsers',
        'settlement_lines', 'api_requests')
GROUP BY table_name HAVING array_agg(column_name::text) @> '{merchant_id,order_id}'
"""
# The copies are published, and their settlement lines written, before anything is measured: otherwise the service would do it
# during the measurement.
_FEED = "INSERT INTO feeds (merchant_id, last_position) VALUES ($1, 0) ON CONFLICT DO NOTHING"
_SETTLEMENT = "INSERT INTO settlements (merchant_id, closed_until) VALUES ($1, now()) ON CONFLICT DO NOTHING"
_SETTLE = "SELECT settle_movements($1, 1000000)"


def approved_order(url: str, token: str) -> UUID:
    """Create an order and complete its checkout, as a browser without JavaScript would."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    answer = httpx.post(f"{url}/order", content=ORDER_JSON, headers=headers, trust_env=False)
    created = answer.raise_for_status().json()
    walk(created["redirectUrl"], "approved")
    return UUID(created["orderId"])


def captured_order(url: str, token: str) -> UUID:
    """Make an approved order that is captured in full."""
    order = approved_order(url, token)
    body = {"amount": "100.00", "merchantReference": "whole"}
    headers = {"Authorization": f"Bearer {token}"}
    httpx.post(f"{url}/order/{order}/capture", json=body, headers=headers, trust_env=False).raise_for_status()
    return order


async def fill(
    where: dict[str, Any],
    merchant_id: UUID,
    model: UUID,
    count: int,
    prefix: str = POOL_PREFIX,
    first: int = 1,
) -> None:
    """Copy the model order, as orders `first` to `count` of a pool."""
    owner = await asyncpg.connect(**where)
    try:
        tables = await owner.fetch(_COLUMNS)
        async with owner.transaction():
            # The copies are copies of checked rows, so the triggers need not check each of them. This saves a third
            # of the time.
            await owner.execute("SET LOCAL session_replication_role = replica")
            for table in tables:
                await owner.execute(_copy(table, prefix), merchant_id, model, first, count)
            await owner.execute(_FEED, merchant_id)
            await owner.execute(_publish(prefix), merchant_id, model, first, count)
            await owner.execute(_SETTLEMENT, merchant_id)
        while await owner.fetchval(_SETTLE, merchant_id):
            pass
        # Bring the tables into the state after autovacuum, and avoid a checkpoint in the middle of a measurement.
        await owner.execute("VACUUM ANALYZE")
        await owner.execute("CHECKPOINT")
    finally:
        await owner.close()


def _copy(table: asyncpg.Record, prefix: str) -> str:
    names = list(table["columns"])
    values = [_value(name, kind, prefix) for name, kind in zip(names, table["types"], strict=True)]
    return f"""INSERT INTO {table["table_name"]} ({", ".join(names)}) SELECT {", ".join(values)}
        FROM generate_series($3::bigint, $4::bigint) n, {table["table_name"]}
        WHERE merchant_id = $1 AND order_id = $2"""


def _publish(prefix: str) -> str:
    return f"""WITH numbered AS (
            SELECT f.last_position + row_number() OVER (ORDER BY n, e.sequence) AS position, e.sequence,
                {order_id_sql("n", prefix)} AS order_id
            FROM generate_series($3::bigint, $4::bigint) n, events e, feeds f
            WHERE e.merchant_id = $1 AND e.order_id = $2 AND f.merchant_id = $1
        ), fed AS (
            INSERT INTO feed (merchant_id, position, order_id, sequence)
                SELECT $1, position, order_id, sequence FROM numbered RETURNING position
        )
        UPDATE feeds SET last_position = (SELECT max(position) FROM fed) WHERE merchant_id = $1"""


def _value(name: str, kind: str, prefix: str) -> str:
    if name == "order_id":
        return order_id_sql("n", prefix)
    if kind == "uuid" and name not in {"merchant_id", "consumer_id"}:
        # The same old id gets the same new id in every table, so references stay valid.
        return f"md5({name}::text || '{prefix}' || n)::uuid"
    return name
