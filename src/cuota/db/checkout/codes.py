"""Counts the one-time codes of the current hour, by keyed hashes of the number, address, browser and so on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from cuota.db.old_rows import deleting
from cuota.db.session import Session

_COUNT = "SELECT count_codes($1::bytea[], $2::integer[], $3)"
_FULL = "CU429"
_FORGET = deleting("codes_sent", "phone_hash, hour", "hour < $1::timestamptz - interval '2 hours'")


async def count(session: Session, counted: Sequence[tuple[bytes, int]], now: datetime) -> set[bytes]:
    """Count one code for all pairs (keyed hash, hourly limit), or for none.

    Return the hashes whose limit is reached.
    """
    hashes, most = [value for value, _ in counted], [limit for _, limit in counted]
    try:
        await session.fetchrow(_COUNT, hashes, most, now)
    except asyncpg.PostgresError as problem:
        if problem.sqlstate != _FULL:
            raise
        return {bytes.fromhex(each) for each in str(problem.detail).split()}
    return set()


async def forget(session: Session, now: datetime) -> None:
    """Delete the counts of hours that began more than two hours ago."""
    await session.fetchrow(_FORGET, now)
