"""Adds a timeout to every call of a rail. A rail that hangs counts as one that did not answer."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable
from typing import TypeVar
from uuid import UUID

from cuota.core.checkout.card import CardEntry
from cuota.core.message import Message
from cuota.core.order.order import LOOK_UP_AFTER
from cuota.rails.card import Card, CardAnswer, CardRail
from cuota.rails.issuing import IssuingRail, VirtualCard
from cuota.rails.message import MessageRail
from cuota.rails.unavailable import RailUnavailable

SECONDS = 10.0
MESSAGE_SECONDS = 15.0
# A charge is looked up only after its own call can no longer answer.
assert LOOK_UP_AFTER.total_seconds() > SECONDS
T = TypeVar("T")
log = logging.getLogger("cuota.rails")


async def _within(call: Awaitable[T], seconds: float) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError:
        raise RailUnavailable(f"no answer within {seconds:.0f} seconds") from None
    except RailUnavailable:
        raise
    except Exception as problem:
        log.exception("rail failed")
        raise RailUnavailable(f"the rail failed ({type(problem).__name__})") from None


_REASON = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)


def _read(answer: object) -> CardAnswer:
    """Check an answer. Anything but a clear approval or decline counts as no answer, so the charge is looked up later."""
    if not isinstance(answer, CardAnswer) or not isinstance(answer.approved, bool):
        raise RailUnavailable("the rail's answer cannot be read")
    if answer.approved or (isinstance(answer.reason, str) and _REASON.fullmatch(answer.reason)):
        return answer
    return CardAnswer(False, "card_declined")


class BoundedCardRail:
    """Wraps a CardRail. Raises RailUnavailable after a timeout or an unexpected error."""

    def __init__(self, rail: CardRail, seconds: float = SECONDS) -> None:
        self._rail = rail
        self._seconds = seconds

    async def tokenize(self, card: CardEntry) -> Card:
        """Bounded."""
        return await _within(self._rail.tokenize(card), self._seconds)

    async def charge(self, key: UUID, token: str, amount: int, currency: str) -> CardAnswer:
        """Bounded."""
        return _read(await _within(self._rail.charge(key, token, amount, currency), self._seconds))

    async def find_charge(self, key: UUID) -> CardAnswer | None:
        """Bounded."""
        found = await _within(self._rail.find_charge(key), self._seconds)
        return None if found is None else _read(found)

    async def refund(self, key: UUID, charge: UUID, amount: int) -> CardAnswer:
        """Bounded."""
        return _read(await _within(self._rail.refund(key, charge, amount), self._seconds))


class BoundedIssuingRail:
    """Wraps an IssuingRail. Raises RailUnavailable after a timeout or an unexpected error."""

    def __init__(self, rail: IssuingRail, seconds: float = SECONDS) -> None:
        self._rail = rail
        self._seconds = seconds

    async def issue(self, key: UUID, merchant_id: UUID, order_id: UUID, amount: int, currency: str) -> None:
        """Bounded."""
        await _within(self._rail.issue(key, merchant_id, order_id, amount, currency), self._seconds)

    async def reveal(self, key: UUID) -> VirtualCard | None:
        """Bounded."""
        return await _within(self._rail.reveal(key), self._seconds)

    async def hide(self, key: UUID) -> None:
        """Bounded."""
        await _within(self._rail.hide(key), self._seconds)

    async def limit(self, key: UUID, amount: int) -> None:
        """Bounded."""
        await _within(self._rail.limit(key, amount), self._seconds)


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
        """Bounded."""
        await _within(self._rail.send_code(phone, code, sender), self._seconds)

    async def send(self, message: Message) -> None:
        """Bounded."""
        await _within(self._rail.send(message), self._seconds)
