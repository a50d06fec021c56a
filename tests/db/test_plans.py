"""No statement reads a table that grows from end to end: what it costs must not grow with the shop.

Every statement of db, and every one that the flows really send, is planned on tables with many rows.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest
from test_statements import statements

from cuota.db.pool import SESSION
from makers import phone_number
from own_service import Own

# What the planner is told of the tables: many rows wherever there are any, and nothing of what is in them.
_LARGE = """DELETE FROM pg_statistic;
UPDATE pg_class SET reltuples = CASE WHEN reltuples > 0 THEN 5000000 ELSE -1 END,
    relpages = CASE WHEN reltuples > 0 THEN 1 ELSE 0 END
    WHERE relkind = 'r' AND relnamespace IN ('public'::regnamespace, 'card_simulator'::regnamespace,
        'issuing_simulator'::regnamespace, 'message_simulator'::regnamespace)"""
# A few rows each, however many orders there are.
FEW = {
    "installation", "last_served", "signing_keys", "merchants", "credentials", "policies", "models", "feeds",
    "sandbox_clock", "forks", "webhook_endpoints", "token_failures", "outbox", "migrations",
}  # fmt: skip
# What reads all of a table, and why that is right.
ALLOWED = {
    "charges._FAILED": "its index holds only what failed, which an operator settles",
    "claims._CLAIMERS": "its index holds only what is under way",
    "story._FIND": "the operator looks for an order by a merchant's reference, by hand",
    "clock._NEXT": "the sandbox's clock alone, on a developer's machine",
    "clock._PAID": "the same",
    "clock._DUE": "the same",
}


def scans(plan: dict[str, Any]) -> Iterator[str]:
    """Tables that a plan reads from end to end: row after row, or along an index that it has no key for."""
    kind, ended = plan["Node Type"], plan["Node Type"] == "Limit"
    if kind == "Seq Scan" or (kind.startswith(("Index", "Bitmap Index")) and "Index Cond" not in plan):
        yield plan.get("Relation Name") or plan["Index Name"]
    for part in plan.get("Plans", ()):
        # The first few along an index are few.
        if not (ended and part["Node Type"].startswith("Index")):
            yield from scans(part)


async def read_whole(owner: asyncpg.Connection, sql: str) -> set[str]:
    await owner.execute(f"PREPARE asked AS {sql}")
    given = await owner.fetchval(
        "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'asked'"
    )
    values = f"({', '.join(['NULL'] * given)})" if given else ""
    text = await owner.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE asked{values}")
    await owner.execute("DEALLOCATE asked")
    return set(scans(json.loads(text)[0]["Plan"])) - FEW


async def test_no_statement_reads_a_growing_table_from_end_to_end(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: dict[str, str] = {}
    for name in ("fetch", "fetchrow", "execute"):
        real = getattr(asyncpg.Connection, name)

        async def noting(self: Any, sql: str, *values: Any, _real: Any = real, **more: Any) -> Any:
            sent.setdefault(sql, "sent by a flow")
            return await _real(self, sql, *values, **more)

        monkeypatch.setattr(asyncpg.Connection, name, noting)
    order = await own.merchant.approved("100.00")
    await asyncio.gather(*(own.merchant.move(order, "capture", "1.00", f"c{n}") for n in range(8)))
    keyed = {"amount": "1.00", "merchantReference": "keyed"}
    path, key = f"/order/{order['orderId']}/capture", {"Idempotency-Key": "a key"}
    assert (await own.merchant.http.post(path, json=keyed, headers=key)).status_code == 200
    await own.merchant.move(order, "void", "10.00", "v")
    await own.merchant.move(order, "refund", "2.00", "r")
    await asyncio.gather(*(own.merchant.create(consumer={"phoneNumber": phone_number()}) for _ in range(8)))
    monkeypatch.undo()
    assert any("UPDATE orders o SET version" in sql and "movements" in sql for sql in sent)
    constants = {
        sql: name for name, sql in statements() if re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", sql)
    }
    every = {
        **sent,
        **{sql: name for sql, name in constants.items() if ":1" not in sql and "FROM changed" not in sql},
    }
    wrong, looked = [], 0
    async with own.owner() as owner:
        await owner.execute("ANALYZE")
        await owner.execute(_LARGE)
        for name, value in SESSION.items():
            await owner.fetchval("SELECT set_config($1, $2, false)", name, value)
        for sql, name in every.items():
            if not re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", sql) or "pg_" in sql:
                continue
            try:
                found = await read_whole(owner, sql)
            except asyncpg.PostgresSyntaxError:
                continue  # a piece of a statement, not one
            looked += 1
            if found and name not in ALLOWED:
                wrong.append(f"{name} reads all of {', '.join(sorted(found))}: {' '.join(sql.split())[:300]}")
    assert looked > 100
    assert not wrong, "\n".join(wrong)
