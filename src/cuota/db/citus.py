"""Where each table lies on a Citus cluster: a merchant's rows on one shard, what all merchants share on every node.

PLACES is the one list of it; a test holds it against the catalogue, so that no table is forgotten.
"""

from __future__ import annotations

from cuota.db.migrate import OnProgress, untold
from cuota.db.pool import Connection, UnsafeDatabase

MERCHANT = "by merchant_id"
EVERYWHERE = "on every node"
COORDINATOR = "on the coordinator"

_BY_MERCHANT = (
    # The first is what the others are colocated with.
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
# Small, or written once a checkout, and joined with rows of every merchant. merchants has a unique name, which a
# distributed table could not hold.
_EVERYWHERE = ("merchants", "credentials", "consumers", "consumer_exposure", "consumer_asks")
# Never joined with a merchant's rows. account_sessions changes its own key, token_failures is unlogged: neither could
# be distributed.
_COORDINATOR = (
    "migrations",
    "installation",
    "last_served",
    "signing_keys",
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
# Companies outside, in the sandbox only: they commit apart from us.
SIMULATORS = ("card_simulator", "message_simulator", "issuing_simulator")

PLACES = {
    **dict.fromkeys(_EVERYWHERE, EVERYWHERE),
    **dict.fromkeys(_BY_MERCHANT, MERCHANT),
    **dict.fromkeys(_COORDINATOR, COORDINATOR),
}
# They take the merchant first and run whole on the node that has the merchant's rows.
_FUNCTIONS = ("save_orders", "create_orders")
_UNPLACED = """SELECT p.oid::regprocedure::text AS name FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace AND p.proname = ANY ($1::text[]) AND NOT EXISTS (
        SELECT FROM pg_dist_object d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
            AND d.distribution_argument_index IS NOT NULL)"""
# Without it Citus refuses triggers. Ours only ever look at rows of their own order, so on their own shard.
TRIGGERS = "SET citus.enable_unsafe_triggers = on"


def statements() -> list[tuple[str, str]]:
    """Each table that moves and the statement that moves it, in order: what others refer to first."""
    found = [(table, f"SELECT create_reference_table('{table}')") for table in _EVERYWHERE]
    first = _BY_MERCHANT[0]
    found.append((first, f"SELECT create_distributed_table('{first}', 'merchant_id')"))
    found += [
        (table, f"SELECT create_distributed_table('{table}', 'merchant_id', colocate_with => '{first}')")
        for table in _BY_MERCHANT[1:]
    ]
    return found


async def require_citus(connection: Connection) -> None:
    """Refuse a database without Citus, before anything is changed in it."""
    if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"):
        raise UnsafeDatabase(
            "The database has no Citus. On the coordinator, as superuser: CREATE EXTENSION citus; see docs/scaling.md."
        )


async def distribute(connection: Connection, told: OnProgress = untold) -> list[str]:
    """Move every table that is not where it belongs yet; answers which. Run again after an upgrade that adds tables."""
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
