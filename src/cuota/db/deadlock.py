"""Runs a transaction again if PostgreSQL aborted it to resolve a deadlock. An aborted transaction changed nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

# The pause gives the other transaction time to continue. Without a pause, the retry could lock the same row again first.
PAUSE_SECONDS = 0.1

ResultT = TypeVar("ResultT")


async def once_more(run: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """Call `run`, which is one statement on its own or one whole transaction. Call it a second time after a deadlock."""
    try:
        return await run()
    except asyncpg.DeadlockDetectedError:
        await asyncio.sleep(PAUSE_SECONDS)
        return await run()
