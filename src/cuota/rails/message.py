"""The message rail: one-time codes and notices to consumers. The sandbox's fills an inbox to look into."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID, uuid4

from cuota.core.message import Message
from cuota.core.sandbox import CODE
from cuota.rails.inbox import PUT
from cuota.rails.stores import RailDatabase
from cuota.rails.unavailable import RailUnavailable

__all__ = ["MessageRail", "RailUnavailable", "SandboxMessageRail", "code_text", "utc_now"]


class MessageRail(Protocol):
    """What CUOTA_MESSAGE_RAIL names; a class without arguments. Both sends may raise RailUnavailable."""

    shown_code: str | None
    """A code that the pages may show because no message is really sent; None outside the sandbox."""

    def new_code(self) -> str:
        """Six digits, not to be guessed."""
        ...

    async def send_code(self, phone: str, code: str, sender: str) -> None:
        """Text the code to a ten-digit US number, in the name of `sender`."""
        ...

    async def send(self, message: Message) -> None:
        """Send a notice; the same `message.key` again is the same notice, and need not be sent twice."""
        ...


def code_text(code: str, sender: str) -> str:
    """What a one-time code's text says. The code comes first: phones show the beginning."""
    return f"{code} is your {sender} code. We never ask you for it: do not give it to anyone."


def utc_now() -> datetime:
    """The real clock."""
    return datetime.now(UTC)


class SandboxMessageRail:
    """Sends nothing outside: what consumers would get lands in the inbox at /sandbox/inbox.

    The code is always 123456, as the sandbox's test table says, and the page shows it.
    """

    shown_code: str | None = CODE

    def __init__(self, books: RailDatabase, now: Callable[[], datetime] = utc_now) -> None:
        self._books = books
        self._now = now

    def new_code(self) -> str:
        """The one code of the sandbox."""
        return CODE

    async def send_code(self, phone: str, code: str, sender: str) -> None:
        """Put it into the inbox."""
        await self._put(uuid4(), "text", phone, f"{sender}: one-time code", code_text(code, sender))

    async def send(self, message: Message) -> None:
        """Put it into the inbox, once for each way that the consumer could be reached by."""
        if message.email is not None:
            await self._put(message.key, "mail", message.email, message.subject, message.mail_text)
        if message.phone is not None:
            await self._put(message.key, "text", message.phone, message.subject, message.text)

    async def _put(self, key: UUID, channel: str, recipient: str, subject: str, text: str) -> None:
        await self._books.execute(PUT, key, channel, recipient, subject, text, self._now())
