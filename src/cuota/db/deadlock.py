"""Runs a transaction once more if PostgreSQL ended it to resolve a deadlock. Then nothing of it was applied."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

# Meanwhile the other transaction wakes up and goes on. Without a pause, this one could lock the same row again before that.
PAUSE_SECONDS = 0.1

ResultT = TypeVar("ResultT")


async def once_more(run: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """Call `run`, which is one statement on its own or one whole transaction. Call it a second time after a deadlock."""
    try:
        return await run()
    except asyncpg.DeadlockDetectedError:
        await asyncio.sleep(PAUSE_SECONDS)
        return await run()
