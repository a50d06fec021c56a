"""Reads of one order by its id. On a pool, the reads of one merchant that wait at the same moment share a statement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar
from uuid import UUID

from cuota.db.gathered import Gathered
from cuota.db.pool import Pool, Row
from cuota.db.session import Session

ResultT = TypeVar("ResultT")


class ReadById(Generic[ResultT]):
    """A read by order id. `one` takes the merchant id and an order id, `many` the merchant id and an array of order ids.

    The rows have the column order_id. `make` makes the result from a row. With `at_once`, the first read runs alone at once, and
    the others wait for it. Without it, the reads of the same moment share one statement.
    """

    def __init__(self, one: str, many: str, make: Callable[[Row], ResultT], *, at_once: bool = False) -> None:
        self._one, self._many, self._make = one, many, make
        self._kind = Gathered(self._row, self._rows, at_once=at_once)

    async def __call__(self, session: Session, merchant_id: UUID, order_id: UUID) -> ResultT | None:
        """Return the result, or None if no order of the merchant matches."""
        asked = merchant_id, order_id
        if isinstance(session, Pool):
            row = await session.together(self._kind, merchant_id, asked)
        else:
            row = await self._row(session, asked)
        return None if row is None else self._make(row)

    async def _row(self, session: Session, asked: tuple[UUID, UUID]) -> Row | None:
        return await session.fetchrow(self._one, *asked)

    async def _rows(self, session: Session, asked: Sequence[tuple[UUID, UUID]]) -> list[Row | None]:
        order_ids = [order_id for _, order_id in asked]
        found = {row["order_id"]: row for row in await session.fetch(self._many, asked[0][0], order_ids)}
        return [found.get(order_id) for order_id in order_ids]
