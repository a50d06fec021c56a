"""No statement reads a growing table from end to end, so the cost of a statement does not grow with the shop.

The tests plan three kinds of statements on tables with many rows: every statement of db, every statement inside the functions
that save orders, and every statement that the flows really send.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import asyncpg
import pytest

from cuota.db.order import orders
from cuota.db.plan import messages, plans
from cuota.db.pool import SESSION
from support.db import save_functions
from support.db.statements import OF_CITUS, statements
from support.own_service import Own
from support.phones import phone_number

# Make the planner assume that each table with rows has many rows, and delete its statistics about the values.
_LARGE = """DELETE FROM pg_statistic;
UPDATE pg_class SET reltuples = CASE WHEN reltuples > 0 THEN 5000000 ELSE -1 END,
    relpages = CASE WHEN reltuples > 0 THEN 1 ELSE 0 END
    WHERE relkind = 'r' AND relnamespace IN ('public'::regnamespace, 'card_simulator'::regnamespace,
        'issuing_simulator'::regnamespace, 'message_simulator'::regnamespace)"""
# The tables with many rows that belong to merchants, and their columns.
_WITH_MERCHANT = """SELECT c.relname, array_agg(a.attname::text) AS columns FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.reltuples >= 60 AND a.attnum > 0 AND NOT a.attisdropped
        AND a.attgenerated = '' GROUP BY c.relname HAVING bool_or(a.attname = 'merchant_id')"""
# The tables for which the planner measures the number of merchants. A unique index on the merchant alone says that each has one row.
_MEASURED = """SELECT c.relname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE a.attname = 'merchant_id'
    AND c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attoptions IS DISTINCT FROM '{n_distinct=2}'
    AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indpred IS NULL
        AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)"""
_WHOLE = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
# These tables have few rows, regardless of the number of orders.
FEW = {
    "installation", "last_served", "signing_keys", "signing_keys_p256", "merchants", "credentials", "policies", "models", "feeds", "feeds_pkey",
    "sandbox_clock", "forks", "hash_key", "service_role", "webhook_endpoints", "token_failures", "outbox", "migrations",
    "consumer_reservations", "card_rails", "desk_people", "merchant_terms",
    "operator_people", "operator_people_email", "operator_people_pkey",
}  # fmt: skip
# Statements that may read a whole table, each with the reason.
ALLOWED = {
    "charges._PLACE": "the operator runs it by hand",
    "charges._FAILED_SUM": "its index contains only the failed charges, which an operator settles",
    "charges._FAILED": "its index contains only the failed charges, which an operator settles",
    "claims._CLAIMERS": "its index contains only the claimed deliveries",
    "recalculate._MERCHANTS_OF_SHARDS": "it runs only on a Citus cluster, where each shard reads its part; the operator runs it by hand",
    "operator_figures._AGING": "its index contains only overdue installments that are not written off",
    **dict.fromkeys(("operator_figures._WAITING", "operator_figures._PARKED"), "its index has only these"),
    "operator_figures._TO_DECIDE": "its index contains only the disputes that wait for the operator",
    "reviews._WAITING": "its index contains only the waiting reviews",
    "reviews._COUNT": "its index contains only the waiting reviews",
    "rail_figures._PENDING": "the operator runs it by hand",
    "rail_figures._WAITING": "its index contains only the events that are not applied yet",
    "story._FIND": "the operator runs it by hand to find an order by a merchant's reference",
    "clock._NEXT": "it runs only with the sandbox's clock, on a developer's machine",
    "clock._PAID": "it runs only with the sandbox's clock, on a developer's machine",
    "clock._DUE": "it runs only with the sandbox's clock, on a developer's machine",
    "clock._HAS_ORDERS": "it runs only with the sandbox's clock, on a developer's machine",
    "ownership._FOUND": "an operator runs it by hand to erase one consumer; browsers in a checkout are stored for only a month",
    "erasure._OTHER_BROWSERS": "an operator runs it by hand to erase one consumer",
    "erasure._ACCOUNT": "an operator runs it by hand to erase one consumer",
    "erasure._MAILS": "an operator runs it by hand to erase one consumer",
    "bank_accounts._HAVING": "a start of the sandbox runs it to give test accounts to merchants of an earlier release",
    "losses._LOSSES": "the operator opens the losses over the whole ledger by hand",
    "losses._MERCHANT_LOSSES": "the operator opens the losses over the whole ledger by hand",
    "shared_signals._SHARED": "the operator opens the list of shared signals in a window by hand",
    "books._BALANCES": "the operator opens the trial balance over the whole ledger by hand",
    "books._MERCHANT_BALANCES": "the operator opens the trial balance over the whole ledger by hand",
    "operator_list._PAYOUTS": "the operator opens the list of payouts by hand",
    "operator_list._TROUBLED": "the operator opens the list of payouts to look at by hand",
    "operator_list._TROUBLES": "the operator opens the page with the count of payouts to look at by hand",
    "operator_list._HELD": "its index contains only the held payouts",
    "operator_list._COUNT_HELD": "its index contains only the held payouts",
    "onboardings._COUNT_TO_CHECK": "its index contains only the merchants with an item to check",
    "operator_list._TO_DECIDE": "the operator opens the list of disputes to decide by hand",
    "operator_list._PAUSED": "the operator opens the list of merchants with paused payouts by hand",
    "operator_list._DISPUTES": "the operator opens the list of disputes by hand",
    "sending._WAITING": "it counts the payouts that wait for a bank rail, by hand and at a start",
    "settlements._MERCHANTS": "the operator checks the whole ledger by hand",
    "hanging_receivers._HANGING": "it runs at the start of an advance of the sandbox's clock, on a developer's machine",
}

# Statements that read the rows of one merchant in order, page by page.
IN_ORDER = {
    "events._PAGE", "publishing._ASTRAY", "publishing._EVENTLESS", "publishing._LOST", "publishing._NUMBERED",
    "recalculate._ORDERS", "recalculate._STRAY", "settlements._MOVED", "figures._ORDERS", "figures._DAYS", "orders._ENDS",
}  # fmt: skip


# Statements that an operator runs by hand, and that read all rows of each merchant.
BY_HAND = {"story._FIND"}


def scans(plan: dict[str, Any]) -> Iterator[str]:
    """Return the tables that a plan reads from end to end: by a sequential scan, or by an index scan without a condition."""
    kind, ended = plan["Node Type"], plan["Node Type"] == "Limit"
    if kind == "Seq Scan" or (kind.startswith(("Index", "Bitmap Index")) and "Index Cond" not in plan):
        yield plan.get("Relation Name") or plan["Index Name"]
    for part in plan.get("Plans", ()):
        # An index scan under a Limit reads only a few rows.
        if not (ended and part["Node Type"].startswith("Index")):
            yield from scans(part)


def shops(plan: dict[str, Any], table: str = "") -> Iterator[str]:
    """Return the tables in which a plan reads all rows of one merchant.

    A bitmap index scan does not name its table. `table` is the one that the node above reads.
    """
    condition, table = plan.get("Index Cond", ""), plan.get("Relation Name", table)
    if "Index" in plan["Node Type"] and re.fullmatch(r"\(merchant_id = [^()]+\)", condition):
        yield table
    for part in plan.get("Plans", ()):
        yield from shops(part, table)


async def planned(owner: asyncpg.Connection, sql: str) -> dict[str, Any]:
    """Return the plan that a session of the service makes, independent of the parameters' values."""
    await owner.execute(f"PREPARE asked AS {sql}")
    given = await owner.fetchval(
        "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'asked'"
    )
    values = f"({', '.join(['NULL'] * given)})" if given else ""
    text = await owner.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE asked{values}")
    await owner.execute("DEALLOCATE asked")
    plan: dict[str, Any] = json.loads(text)[0]["Plan"]
    return plan


async def plan_every(
    own: Own, sent: dict[str, str], prepare: Sequence[str]
) -> list[tuple[str, str, dict[str, Any]]]:
    """Return name, text and plan of each statement that the flows sent, and of each statement in `cuota.db`."""
    constants = {sql: name for name, sql in statements() if _WHOLE.match(sql)}
    every = {
        **sent,
        **constants,
        **{sql: name for name, sql in save_functions.statements()},
    }
    plans = []
    async with own.owner() as owner:
        for sql in prepare:
            await owner.execute(sql)
        for name, value in SESSION.items():
            await owner.fetchval("SELECT set_config($1, $2, false)", name, value)
        for sql, name in every.items():
            if not _WHOLE.match(sql) or "pg_" in sql or name.startswith(OF_CITUS):
                continue
            # Skip constants that are only parts of a statement.
            with contextlib.suppress(asyncpg.PostgresSyntaxError):
                plans.append((name, " ".join(sql.split())[:300], await planned(owner, sql)))
    assert len(plans) > 100
    saving = {" ".join(sql.split())[:300] for _, sql in save_functions.statements()}
    assert saving <= {text for _, text, _ in plans}
    return plans


async def everything_sent(own: Own, monkeypatch: pytest.MonkeyPatch, times: int) -> dict[str, str]:
    """Return the statements that the flows send to create, capture, void and refund, alone and concurrently."""
    sent: dict[str, str] = {}
    for name in ("fetch", "fetchrow", "execute"):
        real = getattr(asyncpg.Connection, name)

        async def noting(self: Any, sql: str, *values: Any, _real: Any = real, **more: Any) -> Any:
            sent.setdefault(sql, "sent by a flow")
            return await _real(self, sql, *values, **more)

        monkeypatch.setattr(asyncpg.Connection, name, noting)
    order = await own.merchant.approved("100.00")
    await asyncio.gather(*(own.merchant.move(order, "capture", "1.00", f"c{n}") for n in range(times)))
    keyed = {"amount": "1.00", "merchantReference": "keyed"}
    path, key = f"/order/{order['orderId']}/capture", {"Idempotency-Key": "a key"}
    assert (await own.merchant.http.post(path, json=keyed, headers=key)).status_code == 200
    await own.merchant.move(order, "void", "10.00", "v")
    await own.merchant.move(order, "refund", "2.00", "r")
    await asyncio.gather(
        *(own.merchant.create(consumer={"phoneNumber": phone_number()}) for _ in range(times))
    )
    monkeypatch.undo()
    assert {"save_orders", "create_orders"} <= {word for sql in sent for word in re.findall(r"\w+", sql)}
    return sent


async def test_no_statement_reads_a_growing_table_from_end_to_end(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = await everything_sent(own, monkeypatch, 8)
    wrong = [
        f"{name} reads all of {', '.join(sorted(found))}: {sql}"
        for name, sql, plan in await plan_every(own, sent, ["ANALYZE", _LARGE])
        if (found := set(scans(plan)) - FEW) and name not in ALLOWED
    ]
    assert not wrong, "\n".join(wrong)


async def test_a_statement_that_is_planned_while_a_shop_is_small_does_not_read_the_whole_shop_later(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL keeps using a plan while the shop grows, until it analyzes the tables again."""
    sent = await everything_sent(own, monkeypatch, 64)
    plans = await plan_every(own, sent, ["ANALYZE"])
    async with own.owner() as owner:
        rows = await owner.fetch("SELECT relname FROM pg_class WHERE reltuples >= 60 AND relkind = 'r'")
    many = {row["relname"] for row in rows} - FEW
    assert {"orders", "movements", "transfers", "events"} <= many
    wrong = [
        f"{name} reads all that a merchant has of {', '.join(sorted(found))}: {sql}"
        for name, sql, plan in plans
        if (found := set(shops(plan)) & many) and name not in IN_ORDER
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.plain_postgresql("Citus plans each statement for its own merchant")
async def test_no_statement_reads_all_of_a_large_merchant_among_many_small_merchants(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan for any merchant must also be good for the largest, although an average merchant has one order."""
    sent = await everything_sent(own, monkeypatch, 64)
    async with own.owner() as owner:
        many = await _among_small_merchants(owner)
    assert {"orders", "movements", "transfers", "events"} <= many
    wrong = [
        f"{name} reads all that a merchant has of {', '.join(sorted(found))}: {sql}"
        for name, sql, plan in await plan_every(own, sent, ["ANALYZE"])
        if (found := set(shops(plan)) & many) and name not in IN_ORDER | BY_HAND
    ]
    assert not wrong, "\n".join(wrong)


async def test_a_new_database_is_not_planned_as_if_its_tables_stayed_empty(
    own_database: dict[str, Any],
) -> None:
    owner = await asyncpg.connect(**own_database)
    try:
        empty = await owner.fetch(
            "SELECT relname FROM pg_class WHERE relname IN ('orders', 'deliveries') AND reltuples = 0"
        )
    finally:
        await owner.close()
    # -1 means that the table was never analyzed: the planner then assumes that it has rows.
    assert empty == []


@pytest.mark.plain_postgresql("Citus plans each statement for its own merchant")
async def test_the_planner_assumes_two_merchants_in_each_table_that_has_rows_of_many(
    own_database: dict[str, Any],
) -> None:
    """A new table needs `ALTER COLUMN merchant_id SET (n_distinct = 2)`, as in 0046_large_merchants.sql."""
    owner = await asyncpg.connect(**own_database)
    try:
        missing = [row["relname"] for row in await owner.fetch(_MEASURED)]
    finally:
        await owner.close()
    assert missing == []


async def _among_small_merchants(owner: asyncpg.Connection) -> set[str]:
    """Copy each row of the large tables to ten other merchants. Return the names of these tables."""
    await owner.execute("ANALYZE")
    tables = await owner.fetch(_WITH_MERCHANT)
    async with owner.transaction():
        # The copies need no checks, and no merchants.
        await owner.execute("SET LOCAL session_replication_role = replica")
        for table in tables:
            columns = [f'"{name}"' for name in table["columns"]]
            values = ", ".join("gen_random_uuid()" if name == '"merchant_id"' else name for name in columns)
            await owner.execute(
                f"INSERT INTO {table['relname']} ({', '.join(columns)}) SELECT {values} FROM {table['relname']}, generate_series(1, 10) ON CONFLICT DO NOTHING"
            )
    return {table["relname"] for table in tables} - FEW


@pytest.mark.parametrize(
    "sql",
    [orders._WITH_PLANS, plans._ALL_AGREED, messages._SETTLED],
    ids=["orders", "plans", "messages"],
)
async def test_a_statement_for_several_orders_finds_each_by_its_key_even_if_it_is_planned_for_empty_tables(
    own: Own, sql: str
) -> None:
    async with own.owner() as owner:
        for name, value in SESSION.items():
            await owner.execute("SELECT set_config($1, $2, false)", name, value)
        plan = await planned(owner, sql)
    assert set(shops(plan)) - FEW == set()
    assert set(scans(plan)) - FEW == set()
