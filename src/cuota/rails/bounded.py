"""Adds a timeout to every call of a rail. A rail that hangs counts as unavailable."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar
from uuid import UUID

from cuota.core.message import Message
from cuota.rails.issuing import IssuingRail, VirtualCard
from cuota.rails.message import MessageRail
from cuota.rails.unavailable import RailUnavailable

SECONDS = 10.0
MESSAGE_SECONDS = 15.0
T = TypeVar("T")
log = logging.getLogger("cuota.rails")


async def within(call: Awaitable[T], seconds: float, passed: tuple[type[Exception], ...] = ()) -> T:
    """Await a rail's answer. Raises RailUnavailable after a timeout or an error that is not one of `passed`."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError:
        raise RailUnavailable(f"no answer within {seconds:.0f} seconds") from None
    except RailUnavailable:
        raise
    except passed:
        raise
    except Exception as problem:
        log.exception("rail failed")
        raise RailUnavailable(f"the rail failed ({type(problem).__name__})") from None


class BoundedIssuingRail:
    """Wraps an IssuingRail. Raises RailUnavailable after a timeout or an unexpected error."""

    def __init__(self, rail: IssuingRail, seconds: float = SECONDS) -> None:
        self._rail = rail
        self._seconds = seconds

    async def issue(self, key: UUID, merchant_id: UUID, order_id: UUID, amount: int, currency: str) -> None:
        """Call the rail's `issue` with the timeout."""
        await within(self._rail.issue(key, merchant_id, order_id, amount, currency), self._seconds)

    async def reveal(self, key: UUID) -> VirtualCard | None:
        """Call the rail's `reveal` with the timeout."""
        return await within(self._rail.reveal(key), self._seconds)

    async def hide(self, key: UUID) -> None:
        """Call the rail's `hide` with the timeout."""
        await within(self._rail.hide(key), self._seconds)

    async def limit(self, key: UUID, amount: int) -> None:
        """Call the rail's `limit` with the timeout."""
        await within(self._rail.limit(key, amount), self._seconds)


class BoundedMessageRail:
    """Wraps a MessageRail. Raises RailUnavailable after a timeout or an unexpected error."""

    def __init__(self, rail: MessageRail, seconds: float = MESSAGE_SECONDS) -> None:
        self._rail = rail
        self._seconds = seconds
        self.shown_code = rail.shown_code

    def new_code(self) -> str:
        """Return a code of the wrapped rail."""
        return self._rail.new_code()

    async def send_code(self, phone: str, code: str, sender: str) -> None:
        """Call the rail's `send_code` with the timeout."""
        await within(self._rail.send_code(phone, code, sender), self._seconds)

    async def send(self, message: Message) -> None:
        """Call the rail's `send` with the timeout."""
        await within(self._rail.send(message), self._seconds)
