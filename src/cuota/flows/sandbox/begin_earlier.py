"""Sets back the clock of a sandbox without orders, so that a history that ends now can be created."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cuota.db.sandbox import clock
from cuota.flows.sandbox.move_time import CannotMoveTime, moving


async def begin_earlier(where: dict[str, Any], at: datetime) -> None:
    """Set the clock to an instant before now. Requests wait meanwhile. Raises CannotMoveTime if the sandbox has an order.

    With orders, only a rewind can set the clock back, because it also undoes everything that happened since. Without
    orders, nothing is scheduled and nothing was paid, so nothing that has happened could be later than new events.
    """
    async with clock.connected(where) as connection, moving(where, closed=True), connection.transaction():
        if await clock.has_orders(connection):
            raise CannotMoveTime(
                "The sandbox has orders already, so its clock goes back only by `cuota time rewind`. Nothing was changed."
            )
        await clock.begin_at(connection, at)
