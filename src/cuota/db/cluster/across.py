"""Reads the rows of all merchants. If a node of a cluster is down, only that node's merchants are left out."""

from __future__ import annotations

import contextlib
import random
import time
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from cuota.core.refusal import Refused
from cuota.db.apart import late_of
from cuota.db.cluster.narrow import narrow
from cuota.db.hosts import NodeLost
from cuota.db.pool import GONE, Pool
from cuota.db.session import Session

# A statement that finds the merchants with due rows reads every due row. With a backlog, each step of the work would read all of it
# again. So its result is used for this long.
KNOWN_SECONDS = 0.5
# By the pool and by the statement: until when the merchants may be used (time.monotonic()), and the merchants.
_KNOWN: WeakKeyDictionary[Pool, dict[str, tuple[float, list[UUID]]]] = WeakKeyDictionary()

_MERCHANTS = "SELECT merchant_id FROM merchants"
# Where the rows of each merchant are, by Citus's own catalog.
_PLACES = """SELECT p.groupid, m.merchant_id FROM unnest($1::uuid[]) AS m (merchant_id) JOIN pg_dist_placement p
    ON p.shardid = get_shard_id_for_distribution_column('orders', m.merchant_id)"""


async def fetch_across(session: Session, sql: str, *values: object) -> list[Any]:
    """Run a SELECT whose rows have a `merchant_id`.

    If a node is down, query the nodes one by one and skip those that are down.

    Citus sends a statement only to the shards of the merchants that its condition names.
    """
    if not (isinstance(session, Pool) and session.knows_silent):
        with contextlib.suppress(NodeLost):
            return await session.fetch(sql, *values)
    found: list[Any] = []
    narrowed = narrow(sql, len(values) + 1)
    for merchants in (await by_node(session)).values():
        try:
            found += await session.fetch(narrowed, *values, merchants)
        except NodeLost:
            # The work of this node's merchants waits until the node is back.
            continue
    return found


async def claim_across(
    session: Session, due: str, claim: str, now: datetime, lease: timedelta, limit: int, *more: object
) -> list[Any]:
    """Claim at most `limit` rows that are due, of all merchants. The order of the merchants is random.

    If the claim fails for one merchant, its rows wait and the other merchants' rows are claimed.

    `due` finds the merchants ($1 is now). `claim` claims rows of one merchant: $1 the merchant, $2 now, $3 the end of the lease,
    $4 the maximum number of rows, and then `more`. It chooses its rows in a CTE: PostgreSQL may run a subquery again for each row of a
    join, and then takes more rows than the limit (tests/db/test_claims.py).
    """
    found: list[Any] = []
    if known := _known(session, due):
        try:
            found = await _claim(session, known, claim, now, lease, limit, *more)
        except NodeLost:
            # The next claim asks which nodes are up.
            _memory(session).pop(due, None)
            raise
    if len(found) < limit:
        merchants = await _read_due(session, due, now)
        found += await _claim(session, merchants, claim, now, lease, limit - len(found), *more)
    if len(found) < limit:
        # There is no backlog. The next claim also finds merchants that have due rows only then.
        _memory(session).pop(due, None)
    return found


async def sweep(session: Session, find: str, delete: str, before: datetime, *more: object) -> int:
    """Delete old rows: one batch of each merchant. Return how many were deleted. If it fails for one merchant, the others do not wait.

    `find` finds the merchants ($1 is the time). `delete` deletes a batch of the merchant $1, $2 is the time, and then `more`.
    """

    async def delete_some(merchant_id: UUID) -> int:
        return len(await session.fetch(delete, merchant_id, before, *more))

    merchants = [row["merchant_id"] for row in await fetch_across(session, find, before)]
    return await late_of(session, delete).each("deletion of old rows", merchants, delete_some)


async def merchants_with_backlog(session: Session, due: str, now: datetime) -> list[UUID]:
    """Return the merchants with due rows, perhaps as they were a moment ago. Call this only if there are more due rows than are wanted."""
    return _known(session, due) or await _read_due(session, due, now)


def _known(session: Session, due: str) -> list[UUID]:
    until, merchants = _memory(session).get(due, (0.0, []))
    return list(merchants) if time.monotonic() < until else []


async def _read_due(session: Session, due: str, now: datetime) -> list[UUID]:
    until = time.monotonic() + KNOWN_SECONDS
    merchants = [row["merchant_id"] for row in await fetch_across(session, due, now)]
    _memory(session)[due] = until, merchants
    return list(merchants)


def _memory(session: Session) -> dict[str, tuple[float, list[UUID]]]:
    return _KNOWN.setdefault(session, {}) if isinstance(session, Pool) else {}


async def _claim(
    session: Session,
    merchants: list[UUID],
    claim: str,
    now: datetime,
    lease: timedelta,
    limit: int,
    *more: object,
) -> list[Any]:
    random.shuffle(merchants)
    found: list[Any] = []
    lost: list[BaseException] = []

    async def claim_some(merchant_id: UUID) -> int:
        if lost or len(found) >= limit:
            return 0
        try:
            rows = await session.fetch(claim, merchant_id, now, now + lease, limit - len(found), *more)
        except (Refused, *GONE) as problem:
            # No session for this merchant: the others would wait for one in vain, too.
            lost.append(problem)
            return 0
        found.extend(rows)
        return len(rows)

    if isinstance(session, Pool):
        await late_of(session, claim).each("claim", merchants, claim_some)
    else:
        # Inside a transaction, nothing can be claimed after an error.
        for merchant_id in merchants:
            await claim_some(merchant_id)
    if lost and not found:
        raise lost[0]
    return found


async def by_node(session: Session) -> dict[int, list[UUID]]:
    """Return the merchants by the number of the node with their rows."""
    merchants = [row["merchant_id"] for row in await session.fetch(_MERCHANTS)]
    placed: dict[int, list[UUID]] = defaultdict(list)
    for row in await session.fetch(_PLACES, merchants):
        placed[row["groupid"]].append(row["merchant_id"])
    return placed
