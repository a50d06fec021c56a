"""The time of the database's clock: the one clock of an installation with several machines."""

from __future__ import annotations

from datetime import datetime

from cuota.db.session import Session

_TIME = "SELECT clock_timestamp() AS at"


async def read(session: Session) -> datetime:
    """Return the time of the database's clock."""
    row = await session.fetchrow(_TIME)
    assert row is not None
    at: datetime = row["at"]
    return at
