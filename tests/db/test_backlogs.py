"""A claim of a few due messages costs the same, no matter how many are due."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from cuota.db.cluster import across
from cuota.db.order import due as due_orders
from cuota.db.plan import messages
from cuota.db.plan.messages import Channel
from cuota.db.pool import Row
from support.db.same_pool import SamePool
from support.makers import complete
from support.own_service import Own

TAKEN = 24


class CountingPool(SamePool):
    """Counts the statements that look for the merchants with due messages or orders."""

    looked = 0

    async def fetch(self, sql: str, *values: object) -> list[Row]:
        self.looked += sql in {messages._MERCHANTS_WITH_MAILS, due_orders._MERCHANTS}
        return await super().fetch(sql, *values)


@pytest.fixture
async def due(own: Own) -> int:
    """Store messages of one merchant that are all due at the same moment, as reminders are at ten in the morning."""
    shop = own.auto_merchant
    order = await shop.create()
    await complete(own.service, shop.merchant_id, order)
    at = own.context.now() - timedelta(minutes=1)
    values = [(shop.merchant_id, order["orderId"], uuid4(), at) for _ in range(5 * TAKEN)]
    async with own.owner() as connection:
        await connection.execute("DELETE FROM messages")
        await connection.executemany(
            "INSERT INTO messages (merchant_id, order_id, message_id, kind, installment, amount, day, try_at, state,"
            " created_at) VALUES ($1, $2, $3, 'reminder', 2, 2500, current_date, $4, 'pending', $4)",
            values,
        )
        await connection.execute("ANALYZE messages")
    return len(values)


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes_of(part)


@pytest.mark.plain_postgresql("on a cluster, the plan of a statement is on the node")
@pytest.mark.parametrize(
    ("claim", "rows"),
    [(messages._CLAIM_MAILS, TAKEN), (messages._CLAIM_TEXTS, 0)],
    ids=["of their channel", "of the other channel"],
)
async def test_a_claim_reads_no_more_due_messages_than_it_takes(
    own: Own, due: int, claim: str, rows: int
) -> None:
    now = own.context.now()
    async with own.context.pool.session() as session, session.transaction():
        text = await session.fetchval(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {claim}",
            own.auto_merchant.merchant_id,
            now,
            now + messages.LEASE,
            TAKEN,
        )
    read = [
        (node["Actual Rows"], node.get("Rows Removed by Filter", 0))
        for node in nodes_of(json.loads(text)[0]["Plan"])
        if node.get("Index Name") == "messages_to_send"
    ]
    assert read == [(rows, 0)]
    assert due > TAKEN


async def test_claims_from_a_backlog_look_for_its_merchants_once(
    own: Own, due: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(across, "KNOWN_SECONDS", 3600.0)
    pool = CountingPool(own.context.pool)
    claims = due // TAKEN
    claimed = [len(await messages.claim(pool, own.context.now(), TAKEN, Channel.MAIL)) for _ in range(claims)]
    assert (claimed, pool.looked) == ([TAKEN] * claims, 1)
    # The known merchants have nothing left, so this claim looks for others.
    assert (await messages.claim(pool, own.context.now(), TAKEN, Channel.MAIL), pool.looked) == ([], 2)


async def test_a_backlog_of_orders_is_searched_for_merchants_once(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(across, "KNOWN_SECONDS", 3600.0)
    shops = [own.merchant, own.auto_merchant]
    orders = {(shop.merchant_id, UUID((await shop.create())["orderId"])) for shop in shops for _ in range(3)}
    now = own.context.now() + timedelta(days=1)  # by then, these checkouts have timed out
    pool = CountingPool(own.context.pool)
    found = [set(await due_orders.due_orders(pool, now, 2)) for _ in range(3)]
    # The two oldest orders, and some of each merchant.
    assert found == [orders] * 3
    assert pool.looked == 1
