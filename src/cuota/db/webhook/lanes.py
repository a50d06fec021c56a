"""The queues of deliveries: finds the receivers for which a delivery is due.

A merchant may have very many queues, because each order may name its own callback URL. So one search reads at most `most` queues of
each merchant, and the next search continues behind them: the queues of one merchant do not delay the webhooks of the others.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

from cuota.db.cluster.across import fetch_across
from cuota.db.pool import Pool, Row
from cuota.db.session import Session
from cuota.db.webhook.events import OWN_ADDRESS

# The queues of one merchant that one search reads.
MOST_LANES = 500
ALL_LANES = 2**31 - 1


class Lane(NamedTuple):
    """The queue of one receiver. All callback URLs of single orders share one receiver id, so the host and port are part of the key.

    After an endpoint's address has changed, the rest of a long queue keeps the old host in its key.
    """

    merchant_id: UUID
    receiver: UUID
    host: str


# No queue is before this one.
_START = (OWN_ADDRESS, "")
# By the pool and by the statement: the queue of each merchant behind which the next search continues.
_BEHIND: WeakKeyDictionary[Pool, dict[str, dict[UUID, Lane]]] = WeakKeyDictionary()


def _next(its: str, behind: str) -> str:
    """Find the next queue of a merchant in the index. This reads one row, however long the queues are."""
    return f"""SELECT d.merchant_id, d.receiver, d.host FROM deliveries d WHERE d.merchant_id = {its} AND d.state = 'pending'
        AND (d.receiver, d.host) > ({behind}) ORDER BY d.merchant_id, d.receiver, d.host LIMIT 1"""


def _lanes(first: str, its: str, which: str, most: str) -> str:
    """Find the queues behind those of `first`. Each has whether it meets a condition, and whether it is the last of its search."""
    return f"""
lane AS (
    {first}
    UNION ALL
    SELECT n.merchant_id, n.receiver, n.host, l.nth + 1 FROM lane l CROSS JOIN LATERAL (
        {_next(its, "l.receiver, l.host")}) n WHERE l.nth < {most}
)
SELECT l.merchant_id, l.receiver, l.host, l.nth = {most} AS cut, ({which}) AS found FROM lane l
"""


def _of_all(which: str, most: int) -> str:
    """Find queues of all merchants. The parameters from `most` on are: how many of each, and behind which ones."""
    return f"""
WITH RECURSIVE waiting AS (
    (SELECT merchant_id FROM deliveries WHERE state = 'pending' ORDER BY merchant_id, receiver, host LIMIT 1)
    UNION ALL
    SELECT n.merchant_id FROM waiting w CROSS JOIN LATERAL (SELECT d.merchant_id FROM deliveries d
        WHERE d.state = 'pending' AND d.merchant_id > w.merchant_id ORDER BY d.merchant_id, d.receiver, d.host LIMIT 1) n
), {
        _lanes(
            f'''SELECT f.merchant_id, f.receiver, f.host, 1 AS nth FROM waiting w
        LEFT JOIN unnest(${most + 1}::uuid[], ${most + 2}::uuid[], ${most + 3}::text[]) AS b (merchant_id, receiver, host)
            ON b.merchant_id = w.merchant_id
        CROSS JOIN LATERAL ({_next("w.merchant_id", f"coalesce(b.receiver, '{OWN_ADDRESS}'), coalesce(b.host, '')")}) f''',
            "l.merchant_id",
            which,
            f"${most}::integer",
        )
    }"""


def _of_merchant(which: str, most: int) -> str:
    """Find queues of the merchant $1. The parameters from `most` on are: how many, and behind which one."""
    return f"""
WITH RECURSIVE {
        _lanes(
            f"SELECT f.*, 1 AS nth FROM ({_next('$1', f'${most + 1}::uuid, ${most + 2}::text')}) f",
            "$1",
            which,
            f"${most}::integer",
        )
    }"""


def _due(its: str, now: str, own: str) -> str:
    """Return the condition for queues with due deliveries."""
    return f"""(receiver = {own} OR EXISTS (SELECT FROM webhook_endpoints w
        WHERE w.merchant_id = {its} AND w.endpoint_id = l.receiver AND w.state = 'active'))
    AND {now} >= (SELECT d.try_at FROM deliveries d WHERE d.state = 'pending' AND d.merchant_id = {its}
        AND d.receiver = l.receiver AND d.host = l.host ORDER BY d.try_at, d.position LIMIT 1)"""


def _removed(its: str) -> str:
    """Return the condition for queues of removed endpoints."""
    return f"""EXISTS (SELECT FROM webhook_endpoints w
    WHERE w.merchant_id = {its} AND w.endpoint_id = l.receiver AND w.state = 'deleted')"""


_LANES = _of_all(_due("l.merchant_id", "$1", "$2"), 3)
_REMOVED = _of_all(_removed("l.merchant_id"), 1)
# A Citus cluster runs a recursion on the shard of one merchant only. There one statement finds the merchants with pending
# deliveries (each of them has a feed), and one for each merchant finds its queues.
_LANES_OF_MERCHANT = _of_merchant(_due("$1", "$2", "$3"), 4)
_REMOVED_OF_MERCHANT = _of_merchant(_removed("$1"), 2)
_MERCHANTS_PENDING = """SELECT f.merchant_id FROM feeds f CROSS JOIN LATERAL (SELECT 1 FROM deliveries d
    WHERE d.merchant_id = f.merchant_id AND d.state = 'pending' LIMIT 1) p"""


async def lanes_due(session: Session, now: datetime, most: int = MOST_LANES) -> list[Lane]:
    """Return queues that have a due delivery, of the next `most` queues of each merchant. Queues of paused endpoints are left out."""
    return await _found(session, _LANES, _LANES_OF_MERCHANT, now, OWN_ADDRESS, most)


async def lanes_removed(session: Session) -> list[Lane]:
    """Return queues of removed endpoints that have pending deliveries, of the next MOST_LANES queues of each merchant."""
    return await _found(session, _REMOVED, _REMOVED_OF_MERCHANT, MOST_LANES)


async def _found(session: Session, sql: str, of_merchant: str, *values: object) -> list[Lane]:
    memory = _BEHIND.setdefault(session, {}) if isinstance(session, Pool) else {}
    behind = memory.get(sql, {})
    if isinstance(session, Pool) and session.sharded:
        rows: list[Row] = []
        for merchant in await fetch_across(session, _MERCHANTS_PENDING):
            merchant_id = merchant["merchant_id"]
            start = behind[merchant_id][1:] if merchant_id in behind else _START
            rows += await session.fetch(of_merchant, merchant_id, *values, *start)
    else:
        columns = zip(*behind.values(), strict=True) if behind else ((), (), ())
        rows = await session.fetch(sql, *values, *(list(column) for column in columns))
    memory[sql] = {row["merchant_id"]: Lane(*row[:3]) for row in rows if row["cut"]}
    return [Lane(*row[:3]) for row in rows if row["found"]]
