"""The interface for running a statement: a pool, or one of its connections inside a transaction."""

from __future__ import annotations

from typing import Protocol

from cuota.db.pool import Row


class Session(Protocol):
    """A pool, or one connection of it inside a transaction."""

    async def fetchrow(self, sql: str, *values: object) -> Row | None:
        """Return one row, or None."""
        ...

    async def fetch(self, sql: str, *values: object) -> list[Row]:
        """Return all rows."""
        ...
