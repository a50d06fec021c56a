"""Presses the payment button and stops at one step, either until the test lets it continue or forever, like a killed
process."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from cuota.db.checkout.loaded import Checkout
from support.db.same_pool import SamePool
from support.flows.buttons import press
from support.own_service import Own

RESERVE, HISTORY, SAVE, FINISH = "reserve_exposure(", "WITH agreed", "save_orders(", "finish_reservation("


class GatePool(SamePool):
    """The service's pool; the first statement with this piece in it stops before or after it ran."""

    def __init__(self, own: Own, when: str, piece: str) -> None:
        super().__init__(own.context.pool)
        self._when, self._piece = when, piece
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        self.saved: list[bool] = []

    async def fetchrow(self, sql: str, *values: object) -> Any:
        if self._piece not in sql or self.reached.is_set():
            return await self._asked(sql, *values)
        if self._when == "before":
            await self._stop()
        row = await self._asked(sql, *values)
        if self._when == "after":
            await self._stop()
        return row

    async def _asked(self, sql: str, *values: object) -> Any:
        row = await super().fetchrow(sql, *values)
        if SAVE in sql:
            self.saved.append(bool(row is not None and row["saved"]))
        return row

    async def _stop(self) -> None:
        self.reached.set()
        await self.go.wait()


async def stopped(own: Own, seen: Checkout, when: str, piece: str) -> tuple[asyncio.Task[Any], GatePool]:
    """Press the button, and wait until the press reaches this step."""
    pool = GatePool(own, when, piece)
    pressing = asyncio.create_task(press(replace(own.context, pool=pool), seen))
    reached = asyncio.create_task(pool.reached.wait())
    async with asyncio.timeout(60):
        await asyncio.wait({pressing, reached}, return_when=asyncio.FIRST_COMPLETED)
    assert pool.reached.is_set(), pressing.exception() or pressing.result()
    return pressing, pool


async def killed(own: Own, seen: Checkout, when: str, piece: str) -> None:
    """Press the button, and end the press at this step without any cleanup, as if its process were killed."""
    pressing, _ = await stopped(own, seen, when, piece)
    while not pressing.done():
        # Cancel until the press has ended, because it may wait at two places, one after the other.
        pressing.cancel()
        await asyncio.wait({pressing}, timeout=0.05)
    assert pressing.cancelled()
