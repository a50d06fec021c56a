"""Waits for a condition. A fixed sleep would be too short on a slow machine, and too long on a fast one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(true: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until a condition is true. Fails if it never is."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - what another task or process changes sets no event here
            await asyncio.sleep(0.01)
