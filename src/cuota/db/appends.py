"""Statements that add rows: the calls of one statement that wait at the same moment run as one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from cuota.db.gathered import Gathered, by_batches

# The parameters of a statement: each is an array, with one element for each row.
Columns = tuple[Sequence[object], ...]


@cache
def append_of(sql: str) -> Gathered[Columns, None]:
    """Return the kind of request that adds rows with this statement. Each of its parameters is an array."""

    async def many(session: Any, calls: Sequence[Columns]) -> list[None]:
        joined = ([value for call in calls for value in call[n]] for n in range(len(calls[0])))
        await session.fetch(sql, *joined)
        return [None] * len(calls)

    return by_batches(many)
