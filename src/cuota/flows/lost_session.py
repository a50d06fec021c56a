"""What a flow does when its session is lost during a save: nobody knows whether the save was applied, until the rows are read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from cuota.core.refusal import Code, Refused
from cuota.db.hosts import NodeLost
from cuota.db.order import orders
from cuota.db.order.orders import Found
from cuota.db.pool import BUSY, GONE, unavailable
from cuota.flows.context import Context

KnownT = TypeVar("KnownT")
# While the database restarts, we try this many times, PAUSE_SECONDS apart. After that, the answer says that the result is
# unknown.
READ_AGAIN = 20
PAUSE_SECONDS = 0.25
IN_STEP_SECONDS = 5.0


async def read_after_loss(
    context: Context, merchant_id: UUID, order_id: UUID, lost: Exception, unknown: str
) -> Found | None:
    """Read the order and its plan, once the database answers again and its standby has everything that can be read.

    `lost` is the exception of the save. Raises Refused (unavailable, with the text `unknown`) after a timeout, and at once if the
    database answers that the order's node is down: then the merchant gets an answer within a second. Returns None if there is no
    such order.
    """
    if isinstance(lost, NodeLost):
        # The session is usable and knows that the node is down. One more read shows whether the node is back already.
        await asyncio.sleep(PAUSE_SECONDS)
        try:
            return await orders.read_with_plan(context.pool, merchant_id, order_id)
        except (Refused, *GONE, *BUSY):
            raise unavailable(unknown, retry_after=5) from None
    for _ in range(READ_AGAIN):
        await asyncio.sleep(PAUSE_SECONDS)
        try:
            async with asyncio.timeout(IN_STEP_SECONDS):
                await context.pool.in_step()
            return await orders.read_with_plan(context.pool, merchant_id, order_id)
        except (TimeoutError, NodeLost):
            break
        except (Refused, *GONE, *BUSY):
            continue
    raise unavailable(unknown, retry_after=5)


async def until_known(
    context: Context, act: Callable[[], Awaitable[KnownT]], unknown: str, *, lost: bool = False
) -> KnownT:
    """Call `act` again after each lost session, until its result is known. A second call must not add to the effect of the first.

    `lost`: the request already had an effect, so that no error of the database means that nothing was applied. Raises Refused
    (unavailable, with the text `unknown`) after a timeout.
    """
    for number in range(READ_AGAIN):
        try:
            if number:
                await asyncio.sleep(PAUSE_SECONDS)
                async with asyncio.timeout(IN_STEP_SECONDS):
                    await context.pool.in_step()
            return await act()
        except (TimeoutError, NodeLost):
            break
        except GONE:
            lost = True
        except BUSY:
            if not lost:
                raise
        except Refused as refused:
            if not lost or refused.code is not Code.UNAVAILABLE:
                raise
    raise unavailable(unknown, retry_after=5)
