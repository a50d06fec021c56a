"""Counts the one-time codes of the current hour, by keyed hashes of the number, address, browser and so on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cuota.db.pool import Pool
from cuota.db.session import Session

# All statements lock the rows in the same order, so that two counts never deadlock. A full counter is not increased.
_COUNT = """INSERT INTO codes_sent AS c (phone_hash, hour, sent, most)
    SELECT q.value_hash, date_trunc('hour', $3::timestamptz), 1, q.most
        FROM unnest($1::bytea[], $2::integer[]) AS q (value_hash, most) ORDER BY 1
    ON CONFLICT (phone_hash, hour) DO UPDATE SET sent = c.sent + 1, most = excluded.most WHERE c.sent < excluded.most
    RETURNING phone_hash"""
_FORGET = "DELETE FROM codes_sent WHERE hour < $1::timestamptz - interval '2 hours'"


async def count(pool: Pool, counted: Sequence[tuple[bytes, int]], now: datetime) -> set[bytes]:
    """Count one code for each pair of keyed hash and hourly limit, or for none. Return the hashes whose limit is reached."""
    hashes, most = [value for value, _ in counted], [limit for _, limit in counted]
    async with pool.session() as connection:
        begun = connection.transaction()
        await begun.start()
        try:
            rows = await connection.fetch(_COUNT, hashes, most, now)
        except BaseException:
            await begun.rollback()
            raise
        full = set(hashes) - {row["phone_hash"] for row in rows}
        await (begun.rollback() if full else begun.commit())
    return full


async def forget(session: Session, now: datetime) -> None:
    """Delete the counts of earlier hours."""
    await session.fetchrow(_FORGET, now)
