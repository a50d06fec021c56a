"""Distributes the tables on a Citus cluster: all rows of a merchant on one shard, shared tables on every node.

PLACES lists every table. A test compares it with the catalog, so that no table is forgotten.
"""

from __future__ import annotations

from cuota.db import left_behind
from cuota.db.migrate import TRIGGERS, OnProgress, untold
from cuota.db.nodes import require_coordinator
from cuota.db.pool import LOCK_SECONDS, Connection

MERCHANT = "by merchant_id"
CONSUMER = "by consumer_id"
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
    "card_events",
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
    "merchant_terms",
    "merchant_transfers",
    "settlements",
    "settlement_lines",
    "bank_accounts",
    "payouts",
    "reserves",
    "disputes",
    "dispute_evidence",
    "dispute_files",
    "return_notices",
    "plan_changes",
    "settlement_days",
    "desk_links",
    "desk_sessions",
    "audit_log",
    "desk_approvals",
    "desk_passkeys",
    "desk_notices",
    "api_requests",
    "merchant_logos",
    "merchant_onboarding",
    "merchant_owners",
    "merchant_documents",
    "onboarding_decisions",
    "screening_findings",
    "order_terms",
    "order_terms_read",
    "reviews",
)
# A consumer's limit. Each press of the checkout's button changes these rows. The other tables are colocated with the first one.
_BY_CONSUMER = ("consumer_exposure", "consumer_reservations", "consumer_waivers")
# Tables that are small, or joined with rows of every merchant. Names in merchants are unique, which a distributed table could not
# enforce; consumer_asks is found by phone, card and IP address, and desk_people by e-mail address. consumer_blocks is read with
# the history of a consumer at all merchants.
_EVERYWHERE = ("merchants", "credentials", "consumers", "consumer_asks", "consumer_blocks", "desk_people")
# Tables that are never joined with a merchant's rows. account_sessions changes its own key, and token_failures is unlogged;
# neither could be distributed. A browser answers a row of desk_challenges before its merchant is known.
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
    "card_rails",
    "card_declines",
    "card_erasures",
    "operator_people",
    "operator_links",
    "operator_sessions",
    "operator_log",
    "operator_passkeys",
    "operator_challenges",
    "operator_identities",
    "operator_provider_visits",
    "process_minutes",
    "desk_challenges",
    "verify_runs",
)
# Simulators of outside companies, in the sandbox only, and the tables of a rail to a real one. They use separate transactions.
SIMULATORS = (
    "card_simulator",
    "message_simulator",
    "issuing_simulator",
    "card_processor",
    "bank_simulator",
    "bank_files",
)

PLACES = {
    **dict.fromkeys(_EVERYWHERE, EVERYWHERE),
    **dict.fromkeys(_BY_MERCHANT, MERCHANT),
    **dict.fromkeys(_BY_CONSUMER, CONSUMER),
    **dict.fromkeys(_COORDINATOR, COORDINATOR),
}
# The first argument of these functions is the merchant or the consumer. Each call runs completely on the node with that
# merchant's or consumer's rows.
_FUNCTIONS = {
    "save_orders": _BY_MERCHANT[0],
    "save_claims": _BY_MERCHANT[0],
    "save_plan_change": _BY_MERCHANT[0],
    "save_reviewed": _BY_MERCHANT[0],
    "create_orders": _BY_MERCHANT[0],
    "blank_orders": _BY_MERCHANT[0],
    "post_merchant_transfer": _BY_MERCHANT[0],
    "settle_movements": _BY_MERCHANT[0],
    "close_batch": _BY_MERCHANT[0],
    "move_payout": _BY_MERCHANT[0],
    "add_bank_account": _BY_MERCHANT[0],
    "change_bank_account": _BY_MERCHANT[0],
    "withdraw_bank_change": _BY_MERCHANT[0],
    "cancel_bank_change": _BY_MERCHANT[0],
    "resume_payouts": _BY_MERCHANT[0],
    "hold_payouts": _BY_MERCHANT[0],
    "release_payout": _BY_MERCHANT[0],
    "release_would": _BY_MERCHANT[0],
    "log_api_requests": _BY_MERCHANT[0],
    "reserve_exposure": _BY_CONSUMER[0],
    "reserve_waiver": _BY_CONSUMER[0],
    "finish_reservation": _BY_CONSUMER[0],
}

# The place of each table, and of the rows that each distributed function changes.
ON_NODES = {**PLACES, **{name: PLACES[table] for name, table in _FUNCTIONS.items()}}
# Citus must send these to the merchant's node even inside a transaction of several statements. blank_orders writes with
# the owner's rights, and Citus does not let two roles write through the coordinator in one transaction.
_ALWAYS_SENT = ("blank_orders",)
# Citus opens its connections to the workers as the session's role, which must be able to log in there
# (docs/scaling.md).
_LOGIN = "ALTER ROLE cuota_app LOGIN"
# Citus does not pass a session's settings to the nodes. The sessions on the nodes take this setting from the role.
_GIVES_UP = f"ALTER ROLE cuota_app SET lock_timeout = '{LOCK_SECONDS}s'"
# The save_orders of migration 0017 is not included: it also changes the exposure, and a consumer's row may be on
# another node.
_UNPLACED = """SELECT p.oid::regprocedure::text AS signature, p.proname AS name FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace AND p.proname = ANY ($1::text[])
        AND NOT 'exposure_version' = ANY (p.proargnames) AND NOT EXISTS (
        SELECT FROM pg_dist_object d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
            AND d.distribution_argument_index IS NOT NULL)"""


def statements() -> list[tuple[str, str]]:
    """Return each table to distribute with its statement. Tables that others refer to come first."""
    found = [(table, f"SELECT create_reference_table('{table}')") for table in _EVERYWHERE]
    for tables, column in ((_BY_MERCHANT, "merchant_id"), (_BY_CONSUMER, "consumer_id")):
        first = tables[0]
        # Two groups: Citus would otherwise move a consumer's shard with the merchants' shard of the same number.
        apart = ", colocate_with => 'none'" if column == "consumer_id" else ""
        found.append((first, f"SELECT create_distributed_table('{first}', '{column}'{apart})"))
        found += [
            (table, f"SELECT create_distributed_table('{table}', '{column}', colocate_with => '{first}')")
            for table in tables[1:]
        ]
    return found


async def distribute(connection: Connection, told: OnProgress = untold) -> list[str]:
    """Distribute every table that is not distributed yet. Return their names. Run this again after an upgrade adds tables."""
    await require_coordinator(connection)
    rows = await connection.fetch("SELECT logicalrelid::text AS name FROM pg_dist_partition")
    done = {row["name"] for row in rows}
    await connection.execute(_LOGIN)
    await connection.execute(_GIVES_UP)
    await connection.execute(TRIGGERS)
    missing = [(table, sql) for table, sql in statements() if table not in done]
    if _BY_MERCHANT[0] not in done:
        await left_behind.require_stopped(connection)
    for count, (table, sql) in enumerate(missing):
        told(count, len(missing), f"table {table}")
        await left_behind.distribute_table(connection, table, sql)
    await left_behind.remove_left_behind(connection)
    for signature, name in (await unplaced(connection)).items():
        placed = "SELECT create_distributed_function($1, '$1', colocate_with := $2, force_delegation := $3)"
        await connection.execute(placed, signature, _FUNCTIONS[name], name in _ALWAYS_SENT)
    return [table for table, _ in missing]


async def unplaced(connection: Connection) -> dict[str, str]:
    """Return the functions that are not distributed yet: each function's name, by its signature."""
    rows = await connection.fetch(_UNPLACED, list(_FUNCTIONS))
    return {row["signature"]: row["name"] for row in rows}
