"""A rule of the house: a statement that changes several rows locks them in one order, or does not wait for locked rows.

Two statements that lock the same rows in different orders can wait for each other. PostgreSQL ends one of them after a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from support.db.statements import every_statement

# Statements that may lock several rows in any order, each with the reason why it cannot deadlock.
ERASURE = (
    "one erasure or retention job at a time for each merchant (terms.forget), and an erasure is tried again"
)
SWEEP = "only sweeps lock these rows, and a sweep on its own is run once more after a deadlock"
OF_PERSON = "the transaction holds the person's row, and sweeps skip locked rows"
ALLOWED = {
    "card_rails._CLAIM": "one row for each card rail, by name; the pool runs the statement once more after a deadlock",
    "card_rails._SOON": "the same, while the clock is moved and no job runs",
    "charges._KEEP_CARD": "the charges of one order; a save changes one of them, and the pool runs the statement once more after a deadlock",
    "clock._RAILS_AT": "the same, in a sandbox without orders",
    "credentials._RETIRE": "a command of the operator; the pool runs it once more after a deadlock",
    "credentials._REVOKE": "the same; a merchant has at most a few credentials",
    "declines._FORGET": SWEEP,
    "history._FORGET": SWEEP,
    "idempotency._FORGET": "in the order of the times; a save holds one key at a time",
    "endpoints._MOVE": "the first deliveries of a queue, sorted by the key and locked one by one",
    "replays._PARK": "as endpoints._MOVE",
    "replays._PARKED": "as endpoints._MOVE",
    "deliveries._RECORD": "the results are sorted by the key, and each is followed by its later event",
    "api_requests._FORGET": "the service has no right to update these rows, so it cannot lock them first; the pool runs the sweep once more",
    "api_requests._FORGET_ORDERS": ERASURE,
    "blocks._END": "a consumer has at most one open block",
    "blocks._EXPIRE": "a consumer has at most one open block",
    "erasure._ACCOUNT": ERASURE,
    "erasure._ADDITIONAL": ERASURE,
    "erasure._ANSWERS": ERASURE,
    "erasure._BLOCKS": ERASURE,
    "erasure._BROWSERS": ERASURE,
    "erasure._CARDS": ERASURE,
    "erasure._FILES": ERASURE,
    "erasure._OTHER_BROWSERS": ERASURE,
    "erasure._PLANS": ERASURE,
    "erasure._REMEMBERED": ERASURE,
    "erasure._RETURNS": ERASURE,
    "erasure._REVIEWED": ERASURE,
    "erasure._SAID": ERASURE,
    "erasure._UNSENT": ERASURE,
    "erasure._WRITTEN": ERASURE,
    "files._REMOVE": "the files of one statement that was refused, which nobody else knows",
    "identities._UNLINK": "a person has one account at each provider, and one provider is set",
    "logos._REMOVE_OTHERS": "under the lock of the merchant's row",
    "passkeys._REMOVE_ALL": OF_PERSON,
    "operator_passkeys._REMOVE_ALL": OF_PERSON,
    "messages._SETTLED": "this worker has claimed these messages; after a deadlock with an erasure, each one is saved alone",
    "messages._LATER": "as messages._SETTLED",
    "minutes._FORGET": SWEEP,
    "plan_changes._FORGET": ERASURE,
    "plan_changes._TOLD": "one row: a message is about one change of a plan",
    "card_events._RENEW": "the plan of one order, which the event names",
    "sessions._END_ONE": "one session, by its own id",
    "operator_sessions._END_ONE": "one session, by its own id",
    "sessions._END_ALL": OF_PERSON,
    "sessions._END_LINKS": OF_PERSON,
    "operator_sessions._END_ALL": OF_PERSON,
    "operator_sessions._END_LINKS": OF_PERSON,
    "remembered._REVOKE_ALL": "a statement on its own; sweeps hold one row at a time",
    "retention._FORGET_CONSUMERS": "one job at a time holds the row of retention; other transactions lock one consumer",
    "terms._FORGET": "under the lock of the merchant's terms",
    "write_offs._MARK": "the installments of one order, under the lock of the order",
    "save_plan_change.2": "the return notices of one order, under the lock of the order",
    "save_orders.7": "the orders of a batch, sorted by their ids (db/order/outcomes.py)",
}
_CHANGED = re.compile(r"\b(?:UPDATE|DELETE FROM)\s+(?!SET\b|SKIP\b|NOWAIT\b|OF\b)([a-z_.]+)")
_ORDERED = re.compile(r"ORDER BY [^()]* FOR (?:NO KEY )?UPDATE")


@pytest.fixture
async def keys(own_database: dict[str, Any]) -> dict[str, list[str]]:
    """The columns of each table's primary key."""
    owner = await asyncpg.connect(**own_database)
    rows = await owner.fetch(
        """SELECT c.relname AS name, array_agg(a.attname::text) AS columns FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
        WHERE i.indisprimary AND c.relnamespace = 'public'::regnamespace GROUP BY c.relname"""
    )
    await owner.close()
    return {row["name"]: row["columns"] for row in rows}


def several(sql: str, keys: dict[str, list[str]]) -> Iterator[str]:
    """Return the tables of which a statement may change several rows: it does not name the whole key of one row."""
    for table in set(_CHANGED.findall(sql)) & set(keys):
        if keys[table] != ["single"] and not all(
            re.search(rf"\b{column}\s*=\s*\(*\$\d", sql) for column in keys[table]
        ):
            yield table


def has_an_order(sql: str) -> bool:
    return "SKIP LOCKED" in sql or _ORDERED.search(sql) is not None


async def test_a_statement_on_several_rows_locks_them_in_one_order_or_waits_for_none(
    keys: dict[str, list[str]],
) -> None:
    assert {"orders", "deliveries", "consumer_asks"} <= set(keys)
    found = {name: tables for name, sql in every_statement() if (tables := sorted(several(sql, keys)))}
    assert {"deliveries._RECORD", "replays._AGAIN", "sessions._END_ALL"} <= set(found)
    texts = dict(every_statement())
    unordered = {name for name in found if not has_an_order(texts[name])}
    wrong = {name: found[name] for name in unordered - set(ALLOWED)}
    assert not wrong, (
        f"{wrong} may lock several rows in any order. Lock them first, with ORDER BY the key and FOR UPDATE; or skip locked rows; or"
        " change one row in each statement. If it cannot deadlock, add it to ALLOWED in tests/db/test_lock_order.py with the reason."
    )
    stale = set(ALLOWED) - unordered
    assert not stale, f"Remove {sorted(stale)} from ALLOWED: they are gone, or have an order."
