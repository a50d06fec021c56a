"""Reads what is stored about the installation as a whole."""

from __future__ import annotations

from datetime import datetime

from cuota.db.session import Session

_VALUES_FROM = "SELECT agreement_values_from FROM installation"


async def agreement_values_from(session: Session) -> datetime:
    """Return from when on agreements are stored as values. Before, a previous release that reads only texts may run."""
    row = await session.fetchrow(_VALUES_FROM)
    assert row is not None, "a migrated database has this row"
    values_from: datetime = row["agreement_values_from"]
    return values_from
