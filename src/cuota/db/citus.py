"""Distributes the tables on a Citus cluster: all rows of a merchant on one shard, shared tables on every node.

PLACES lists every table. A test compares it with the catalog, so that no table is forgotten.
"""

from __future__ import annotations

from cuota.db.migrate import OnProgress, untold
from cuota.db.pool import Connection, UnsafeDatabase

MERCHANT = "by merchant_id"
EVERYWHERE = "on every node"
COORDINATOR = "on the coordinator"

_BY_MERCHANT = (
    # The first table; the others are colocated with it.
    "orders",
    "order_details",
    "movements",
    "plans",
    "installments",
    "charges",
    "card_refunds",
    "transfers",
    "events",
    "decisions",
    "checkout_sessions",
    "idempotency_keys",
    "outbox",
    "feeds",
    "feed",
    "webhook_endpoints",
    "deliveries",
    "delivery_attempts",
    "messages",
    "sdk_checkouts",
    "virtual_cards",
    "models",
    "signals",
    "retention",
)
# Tables that are small, or written once for each checkout, and joined with rows of every merchant. The table merchants has a
# unique name, which a distributed table could not enforce.
_EVERYWHERE = ("merchants", "credentials", "consumers", "consumer_exposure", "consumer_asks")
# Tables that are never joined with a merchant's rows. account_sessions changes its own key, and token_failures is unlogged;
# neither could be distributed.
_COORDINATOR = (
    "migrations",
    "installation",
    "last_served",
    "signing_keys",
    "signing_keys_p256",
    "hash_key",
    "service_role",
    "token_failures",
    "codes_sent",
    "account_sessions",
    "remembered_browsers",
    "text_choices",
    "sandbox_clock",
    "forks",
    "policies",
    "erasures",
)
# Simulators of outside companies, in the sandbox only. They use separate transactions.
SIMULATORS = ("card_simulator", "message_simulator", "issuing_simulator")

PLACES = {
    **dict.fromkeys(_EVERYWHERE, EVERYWHERE),
    **dict.fromkeys(_BY_MERCHANT, MERCHANT),
    **dict.fromkeys(_COORDINATOR, COORDINATOR),
}
# The functions take the merchant first, and each call runs whole on the node that has the merchant's rows.
_FUNCTIONS = ("save_orders", "create_orders")
_UNPLACED = """SELECT p.oid::regprocedure::text AS name FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace AND p.proname = ANY ($1::text[]) AND NOT EXISTS (
        SELECT FROM pg_dist_object d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
            AND d.distribution_argument_index IS NOT NULL)"""
# Citus refuses triggers without this setting. Our triggers only read rows of their own order, which are on the same shard.
TRIGGERS = "SET citus.enable_unsafe_triggers = on"


def statements() -> list[tuple[str, str]]:
    """Return each table to distribute with its statement. Tables that others refer to come first."""
    found = [(table, f"SELECT create_reference_table('{table}')") for table in _EVERYWHERE]
    first = _BY_MERCHANT[0]
    found.append((first, f"SELECT create_distributed_table('{first}', 'merchant_id')"))
    found += [
        (table, f"SELECT create_distributed_table('{table}', 'merchant_id', colocate_with => '{first}')")
        for table in _BY_MERCHANT[1:]
    ]
    return found


async def require_citus(connection: Connection) -> None:
    """Raise UnsafeDatabase for a database without Citus, before anything is changed."""
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"):
        raise UnsafeDatabase(
            "The database does not have Citus. On the coordinator, as superuser, run: CREATE EXTENSION citus; see docs/scaling.md."
        )


async def distribute(connection: Connection, told: OnProgress = untold) -> list[str]:
    """Distribute every table that is not distributed yet, and return these. Run this again after an upgrade adds tables."""
    await require_citus(connection)
    rows = await connection.fetch("SELECT logicalrelid::text AS name FROM pg_dist_partition")
    done = {row["name"] for row in rows}
    await connection.execute(TRIGGERS)
    missing = [(table, sql) for table, sql in statements() if table not in done]
    for count, (table, sql) in enumerate(missing):
        told(count, len(missing), f"table {table}")
        await connection.execute(sql)
    for row in await connection.fetch(_UNPLACED, list(_FUNCTIONS)):
        placed = "SELECT create_distributed_function($1, '$1', colocate_with := $2)"
        await connection.execute(placed, row["name"], _BY_MERCHANT[0])
    return [table for table, _ in missing]
