"""A card rail whose every call ends: one that hangs is one that did not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar
from uuid import UUID

from cuota.core.card import CardEntry
from cuota.rails.card import Answer, Card, CardRail, RailUnavailable

# Less than core/order.LOOK_UP_AFTER: nobody looks a charge up while its own call may still answer.
SECONDS = 10.0
T = TypeVar("T")


class BoundedCardRail:
    """Wraps a CardRail; raises RailUnavailable where it takes longer than it may."""

    def __init__(self, rail: CardRail, seconds: float = SECONDS) -> None:
        self._rail = rail
        self._seconds = seconds

    async def _within(self, call: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._seconds):
                return await call
        except TimeoutError:
            raise RailUnavailable(f"no answer within {self._seconds:.0f} seconds") from None

    async def tokenize(self, card: CardEntry) -> Card:
        """Bounded."""
        return await self._within(self._rail.tokenize(card))

    async def charge(self, key: UUID, token: str, amount: int, currency: str) -> Answer:
        """Bounded."""
        return await self._within(self._rail.charge(key, token, amount, currency))

    async def find_charge(self, key: UUID) -> Answer | None:
        """Bounded."""
        return await self._within(self._rail.find_charge(key))

    async def refund(self, key: UUID, charge: UUID, amount: int) -> Answer:
        """Bounded."""
        return await self._within(self._rail.refund(key, charge, amount))
