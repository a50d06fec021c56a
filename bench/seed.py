"""Makes the pool of approved orders. One order goes through the hosted checkout; its rows are then copied under other ids.

So every order holds exactly what the service writes: order, document, plan, installments, charge, ledger, events,
decision. `cuota verify` checks all of them at the end of the run.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import httpx

from bench.work import ORDER_JSON, POOL_PREFIX, order_id_sql
from cuota.commands.checkout_walker import walk
from cuota.db.payout import lines
from cuota.db.webhook import events

# Messages to merchants and consumers are sent only for the first order; the copies have none. A browser knows one
# order only.
_COLUMNS = """
SELECT table_name, array_agg(column_name::text) AS columns, array_agg(data_type::text) AS types
FROM information_schema.columns c WHERE table_schema = 'public'
    AND table_name NOT IN ('feed', 'outbox', 'deliveries', 'delivery_attempts', 'messages', 'remembered_browsers',
        'settlement_lines', 'api_requests')
GROUP BY table_name HAVING array_agg(column_name::text) @> '{merchant_id,order_id}'
"""
_WAITING = "SELECT EXISTS (SELECT FROM outbox WHERE merchant_id = $1)"
# The number of events that are published or settled at once.
AT_ONCE = 100_000


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
            await owner.execute(_queue(prefix), merchant_id, model, first, count)
            # The copies are published and settled before anything is measured. Otherwise the service would do it meanwhile.
            while await owner.fetchval(_WAITING, merchant_id):
                await events.publish(owner, merchant_id, datetime.now(UTC), AT_ONCE)
        await lines.next_movements(owner, merchant_id, datetime.now(UTC), 1)
        while await lines.settle(owner, merchant_id, AT_ONCE):
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


def _queue(prefix: str) -> str:
    return f"""INSERT INTO outbox (merchant_id, order_id, sequence)
        SELECT $1, {order_id_sql("n", prefix)}, sequence
        FROM generate_series($3::bigint, $4::bigint) n, events WHERE merchant_id = $1 AND order_id = $2"""


def _value(name: str, kind: str, prefix: str) -> str:
    if name == "order_id":
        return order_id_sql("n", prefix)
    if kind == "uuid" and name not in {"merchant_id", "consumer_id"}:
        # The same old id gets the same new id in every table, so references stay valid.
        return f"md5({name}::text || '{prefix}' || n)::uuid"
    return name
