"""Reads everything that is stored about one consumer, row by row, for `cuota consumer export`.

TREATED has the handling of personal data for every table. A test compares it with the catalog, so that a new table is
never forgotten.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from cuota.core.plan.agreement import accepted_text
from cuota.db.pool import Row
from cuota.db.privacy.ownership import OWN_ROWS, Theirs
from cuota.db.session import Session

ERASED = "erased on request"
TERM = "erased on request, and deleted after its term"
NOBODY = "contains no names: stays with the ledger"
GOES = "contains no names: deleted after its term"
HASHED = "a keyed hash that cannot be read"
OTHER = "nothing about a consumer"
SANDBOX = "sandbox only: test data"

TREATED = {
    "consumers": TERM,
    "order_details": TERM,
    "plans": TERM,
    "sdk_checkouts": TERM,
    "checkout_sessions": TERM,
    "account_sessions": TERM,
    "remembered_browsers": TERM,
    "messages": TERM,
    "plan_changes": TERM,
    "consumer_blocks": TERM,
    **dict.fromkeys(("dispute_evidence", "dispute_files", "return_notices"), TERM),
    "reviews": TERM,  # the operator's reason, which may name somebody; the numbers stay
    "delivery_attempts": TERM,
    "api_requests": TERM,
    "idempotency_keys": GOES,
    "consumer_reservations": GOES,
    **dict.fromkeys(
        ("orders", "movements", "installments", "charges", "card_refunds", "card_events", "transfers", "events", "decisions",
         "consumer_waivers", "virtual_cards", "outbox", "feeds", "feed", "deliveries", "settlement_lines", "disputes"),
        NOBODY,
    ),
    **dict.fromkeys(("signals", "codes_sent", "consumer_exposure", "erasures", "consumer_asks", "text_choices",
         "card_declines", "card_erasures", "order_terms"), HASHED),
    **dict.fromkeys(
        ("merchants", "credentials", "token_failures", "signing_keys", "signing_keys_p256", "webhook_endpoints", "models",
         "policies", "migrations", "installation", "last_served", "hash_key", "service_role", "sandbox_clock", "forks", "retention",
         "card_rails", "merchant_terms", "merchant_transfers", "settlements", "bank_accounts", "payouts", "reserves",
         "settlement_days", "desk_people", "desk_links", "desk_sessions", "audit_log", "desk_approvals", "order_terms_read",
         "operator_people", "operator_links", "operator_sessions", "operator_log", "verify_runs",
         "desk_passkeys", "desk_challenges", "desk_notices", "merchant_logos", "operator_passkeys", "operator_challenges",
         "operator_identities", "operator_provider_visits", "process_minutes", "merchant_onboarding", "merchant_owners",
         "merchant_documents", "onboarding_decisions", "screening_findings"),
        OTHER,
    ),
    "message_simulator.inbox": ERASED,
    "card_processor.customers": ERASED,
    "card_processor.erased_customers": ERASED,
    **dict.fromkeys(
        ("card_simulator.cards", "card_simulator.charges", "card_simulator.refunds", "card_simulator.disputes", "issuing_simulator.cards",
         "issuing_simulator.authorizations", "issuing_simulator.clearings"),
        SANDBOX,
    ),
    **dict.fromkeys(("merchant_transfers", "settlement_lines", "payouts", "settlements", "reserves"), NOBODY),
    **dict.fromkeys(("merchant_terms", "bank_accounts"), OTHER),
    "bank_simulator.orders": SANDBOX,
    **dict.fromkeys(("bank_files.files", "bank_files.payments"), OTHER),
}  # fmt: skip

# Columns with which the service recognizes a browser or a value. They mean nothing to a person, and could open a session.
_SECRET = frozenset(
    [
        "session_hash",
        "code_hash",
        "device_hash",
        "browser",
        "body_hash",
        "value_hash",
        "inputs_hash",
        "card_token",
        "card_hash",
        "token",
        "token_hash",
        "claimed_by",
    ]
)
_ORDERS = """SELECT o.order_id, to_json(o)::text AS order, m.name AS merchant, d.reference, d.document::text AS document, d.erased_at,
    (SELECT to_json(p)::text FROM plans p WHERE p.merchant_id = $1 AND p.order_id = o.order_id AND p.consumer_id = $3) AS plan,
    (SELECT to_json(s)::text FROM sdk_checkouts s WHERE s.merchant_id = $1 AND s.order_id = o.order_id) AS started
FROM orders o JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id
    JOIN merchants m ON m.merchant_id = $1
WHERE o.merchant_id = $1 AND o.order_id = ANY ($2::uuid[])"""
# A consumer may have thousands of orders. One statement for each table reads the rows of this many orders.
AT_ONCE = 100
# The parts of an order's document that describe the shop's customer.
_ABOUT_CUSTOMER = ("consumer", "billing", "shipping", "description")
_LISTED = {
    "installments": "number",
    "charges": "created_at",
    "card_refunds": "created_at",
    "card_events": "at",
    "movements": "created_at",
    "transfers": "number",
    "settlement_lines": "number",
    "disputes": "opened_at",
    "return_notices": "noticed_at",
    "plan_changes": "number",
    "events": "sequence",
    "messages": "created_at",
    "decisions": "decided_at",
    "reviews": "referred_at",
    "signals": "at",
    "virtual_cards": "created_at",
    "checkout_sessions": "created_at",
    "deliveries": "sequence",
    "delivery_attempts": "at",
    "api_requests": "request_id",
}
_OF_PERSON = {
    "consumers": "SELECT to_json(t)::text AS row FROM consumers t WHERE consumer_id = $1",
    "account_sessions": "SELECT to_json(t)::text AS row FROM account_sessions t WHERE consumer_id = $1 OR phone = $2",
    "checkout_sessions": """SELECT to_json(t)::text AS row FROM checkout_sessions t
        WHERE phone = $2 AND consumer_id IS DISTINCT FROM $1 ORDER BY created_at""",
    "remembered_browsers": "SELECT to_json(t)::text AS row FROM remembered_browsers t WHERE consumer_id = $1",
    "card_processor.customers": "SELECT to_json(t)::text AS row FROM card_processor.customers t WHERE consumer_id = $1",
    "card_processor.erased_customers": "SELECT to_json(t)::text AS row FROM card_processor.erased_customers t WHERE consumer_id = $1",
    "consumer_reservations": "SELECT to_json(t)::text AS row FROM consumer_reservations t WHERE consumer_id = $1 ORDER BY ticket",
    "consumer_blocks": "SELECT to_json(t)::text AS row FROM consumer_blocks t WHERE consumer_id = $1 ORDER BY blocked_at",
    "consumer_waivers": "SELECT to_json(t)::text AS row FROM consumer_waivers t WHERE consumer_id = $1 ORDER BY at",
    "erasures": "SELECT to_json(t)::text AS row FROM erasures t WHERE consumer_id = $1 ORDER BY erased_at",
}


RowsOfOrders = dict[UUID, list[dict[str, Any]]]


async def _rows(
    session: Session, table: str, merchant_id: UUID, order_ids: list[UUID], consumer_id: UUID, column: str
) -> RowsOfOrders:
    """Return the rows of orders in a table; if an order may have rows of several consumers there, only those of this one."""
    own = OWN_ROWS.get(table)
    # The table names come from this module, so they are safe in SQL.
    sql = f"""SELECT order_id, to_json({table})::text AS row FROM {table}
        WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[])"""
    values: tuple[object, ...] = (merchant_id, order_ids)
    sql, values = (f"{sql} AND {own}", (*values, consumer_id)) if own else (sql, values)
    found: RowsOfOrders = defaultdict(list)
    for each in await session.fetch(f"{sql} ORDER BY {column}", *values):
        row = _plain(each["row"])
        found[each["order_id"]].append(_with_text(row) if table == "plans" else row)
    return found


async def _read_orders(
    session: Session, merchant_id: UUID, order_ids: list[UUID], consumer_id: UUID, phone: str
) -> list[dict[str, Any]]:
    """Return all rows of orders of one merchant, without those of other people who opened their checkouts."""
    rows = await session.fetch(_ORDERS, merchant_id, order_ids, consumer_id)
    found = {row["order_id"]: _order(row, phone) for row in rows}
    for table, column in _LISTED.items():
        listed = await _rows(session, table, merchant_id, order_ids, consumer_id, column)
        for order_id, order in found.items():
            order[table] = listed.get(order_id, [])
    return [found[each] for each in order_ids]


def _order(row: Row, phone: str) -> dict[str, Any]:
    """Return an order, its plan and its start.

    If the shop gave another number, the shop's data about its customer is left out, because it may describe another person.
    """
    document = json.loads(row["document"])
    started = _plain(row["started"]) if row["started"] else None
    if (document.get("consumer") or {}).get("phoneNumber") not in {None, phone}:
        document |= {**dict.fromkeys(_ABOUT_CUSTOMER), "metadata": {}}
        started = started and {**started, "additional": None}
    return {
        "merchant": row["merchant"],
        **_plain(row["order"]),
        "merchant_reference": row["reference"],
        "document": document,
        "personal_parts_erased_at": row["erased_at"].isoformat() if row["erased_at"] else None,
        "plan": _with_text(_plain(row["plan"])) if row["plan"] else None,
        "started": started,
    }


async def _read_parts(
    session: Session, merchant_id: UUID, order_ids: list[UUID], consumer_id: UUID
) -> list[dict[str, Any]]:
    """Return the rows of this consumer in orders of one merchant that belong to somebody else."""
    found: dict[UUID, dict[str, Any]] = {
        order_id: {"merchant_id": str(merchant_id), "order_id": str(order_id)} for order_id in order_ids
    }
    for table in OWN_ROWS:
        column = _LISTED.get(table, "agreed_at")
        listed = await _rows(session, table, merchant_id, order_ids, consumer_id, column)
        for order_id, part in found.items():
            part[table] = listed.get(order_id, [])
    return list(found.values())


async def read_person(session: Session, consumer_id: UUID, phone: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows about the person that do not belong to an order."""
    found = {}
    for table, sql in _OF_PERSON.items():
        values = (consumer_id, phone) if "$2" in sql else (consumer_id,)
        found[table] = [_plain(row["row"]) for row in await session.fetch(sql, *values)]
    return found


async def read_orders(
    session: Session, theirs: Theirs, consumer_id: UUID, phone: str
) -> list[dict[str, Any]]:
    """Return every order of the consumer in which the number was confirmed, with all of its rows."""
    found: list[dict[str, Any]] = []
    for merchant_id, order_ids in theirs.orders.items():
        for together in _together([each for each in order_ids if each in theirs.proved]):
            found += await _read_orders(session, merchant_id, together, consumer_id, phone)
    return found


async def read_parts(session: Session, theirs: Theirs, consumer_id: UUID) -> list[dict[str, Any]]:
    """Return the rows of the consumer in orders that belong to somebody else."""
    found: list[dict[str, Any]] = []
    for merchant_id, order_ids in theirs.parts.items():
        for together in _together(order_ids):
            found += await _read_parts(session, merchant_id, together, consumer_id)
    return found


def _together(order_ids: list[UUID]) -> Iterator[list[UUID]]:
    return (order_ids[start : start + AT_ONCE] for start in range(0, len(order_ids), AT_ONCE))


def _with_text(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a plan with the text of its agreement, in whichever form the agreement is stored."""
    return {**plan, "agreement": accepted_text(plan["agreement"])}


def _plain(text: str) -> dict[str, Any]:
    return {name: value for name, value in json.loads(text).items() if name not in _SECRET}
