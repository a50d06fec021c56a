"""Phones, cards, addresses and browsers that many orders shared lately, over all merchants."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.risk.signal import SignalKind
from cuota.db.session import Session

# The most frequent values come first. The index signals_old finds the window. Only ids of orders leave the database,
# because a hash means nothing to people.
_SHARED = """SELECT count(*) AS orders, count(DISTINCT merchant_id) AS merchants, min(at) AS first, max(at) AS last,
        (array_agg(order_id ORDER BY at DESC))[1] AS latest
    FROM signals WHERE at >= $2 AND kind = $1 GROUP BY value_hash HAVING count(*) >= $3 ORDER BY 1 DESC, last DESC LIMIT $4"""


@dataclass(frozen=True, slots=True)
class SharedSignal:
    """A value that several orders share. `latest` is the newest of the orders."""

    kind: SignalKind
    orders: int
    merchants: int
    first: datetime
    last: datetime
    latest: UUID


async def shared(
    session: Session, kind: SignalKind, since: datetime, at_least: int, limit: int
) -> list[SharedSignal]:
    """Return the values that at least this many orders have shared since this time, the most frequent first."""
    rows = await session.fetch(_SHARED, kind, since, at_least, limit)
    return [
        SharedSignal(kind, row["orders"], row["merchants"], row["first"], row["last"], row["latest"])
        for row in rows
    ]
