"""Each submitted checkout reserves a part of the consumer's limit, from the read of the history until the result is known.

docs/decisions/exposure.md has the steps, and the state after a crash at each of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar
from uuid import UUID

import asyncpg

from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.refusal import Refused
from cuota.db.order import outcomes
from cuota.db.order.outcomes import Answer
from cuota.db.risk import reservations
from cuota.db.row_security import everyone
from cuota.db.session import Session
from cuota.flows.context import Context

log = logging.getLogger("cuota.risk")
# After these errors, the save was certainly not applied, even on a sharded database. After a statement timeout on a sharded
# database, the save may have been applied.
NOT_SAVED = (Refused, asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
ResultT = TypeVar("ResultT")


class Hold:
    """The reservation of one submission. It is deleted at the end, unless the result of a save is unknown.

    Then a background job deletes the reservation after it has made sure that the save can no longer be applied.
    """

    def __init__(self, context: Context, consumer_id: UUID) -> None:
        self._context = context
        self._consumer_id = consumer_id
        self._ticket: int | None = None
        self._in_doubt = False

    async def take(self, order: Order) -> dict[UUID, int]:
        """Reserve the order's amount, or renew the reservation. Return the cents that other orders reserved earlier.

        `order` must have been read before this call: a save of the order fails if the background job deletes the reservation.
        """
        with everyone():
            reserved = await reservations.reserve(
                self._context.pool, self._consumer_id, order.merchant_id, order.order_id,
                order.amount + order.fee, self._ticket,
            )  # fmt: skip
        self._ticket = reserved.ticket
        return reserved.earlier

    async def save(self, session: Session, outcome: Outcome, answer: Answer | None = None) -> bool:
        """Save like `outcomes.save`, and remember whether the result is known."""
        self._in_doubt = True
        try:
            saved = await outcomes.save(session, outcome, answer)
        except NOT_SAVED:
            self._in_doubt = False
            raise
        self._in_doubt = False
        return saved

    async def end(self) -> None:
        """Delete the reservation. Never raises: a reservation that could not be deleted expires."""
        if self._ticket is None or self._in_doubt:
            return
        try:
            with everyone():
                await reservations.finish(self._context.pool, self._consumer_id, self._ticket)
        except Exception:
            log.exception("reservation is left to expire", extra={"facts": {"ticket": self._ticket}})

    async def end_during(self, work: Awaitable[ResultT]) -> ResultT:
        """Delete the reservation while `work` runs, and return the result of `work`."""
        ending = asyncio.create_task(self.end())
        try:
            return await work
        finally:
            await ending
