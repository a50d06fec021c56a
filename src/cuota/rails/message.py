"""The message rail: sends one-time codes and notices to consumers. The sandbox's rail stores them in an inbox."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID, uuid4

from cuota.core.message import Message
from cuota.core.sandbox import CODE
from cuota.rails.inbox import PUT
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailDatabase, RailVault
from cuota.rails.unavailable import RailUnavailable

__all__ = ["MessageRail", "RailUnavailable", "SandboxMessageRail", "code_text"]


class MessageRail(Protocol):
    """The interface of the class in CUOTA_MESSAGE_RAIL. Both sends may raise RailUnavailable.

    The constructor takes what `rails/load.py` gives to every rail: `(settings, books, vault, now)`.
    """

    shown_code: str | None
    """A code that the pages may show, because no message is really sent. None outside the sandbox."""

    def new_code(self) -> str:
        """Return six digits that cannot be guessed."""
        ...

    async def send_code(self, phone: str, code: str, sender: str) -> None:
        """Send the code by text message to a ten-digit US number, in the name of `sender`."""
        ...

    async def send(self, message: Message) -> None:
        """Send a notice. A repeated call with the same `message.key` is the same notice, and need not send it again."""
        ...


def code_text(code: str, sender: str) -> str:
    """Return the text message with a one-time code. The code comes first, because phones show only the beginning."""
    return f"{code} is your {sender} code. We never ask you for it: do not give it to anyone."


class SandboxMessageRail:
    """Sends nothing. It stores each message in the inbox at /sandbox/inbox.

    The one-time code is always 123456, and the page shows it.
    """

    shown_code: str | None = CODE

    def __init__(self, settings: RailSettings, books: RailDatabase, vault: RailVault, now: Clock) -> None:
        del settings, vault
        self._books = books
        self._now = now

    def new_code(self) -> str:
        """Return the sandbox's only code."""
        return CODE

    async def send_code(self, phone: str, code: str, sender: str) -> None:
        """Store the code's message in the inbox."""
        await self._put(uuid4(), f"{sender}: one-time code", [("text", phone, code_text(code, sender))])

    async def send(self, message: Message) -> None:
        """Store the notice in the inbox, once for each way of reaching the consumer (e-mail and text)."""
        ways = []
        if message.email is not None:
            ways.append(("mail", message.email, message.mail_text))
        if message.phone is not None:
            ways.append(("text", message.phone, message.text))
        if ways:
            await self._put(message.key, message.subject, ways)

    async def _put(self, key: UUID, subject: str, ways: list[tuple[str, str, str]]) -> None:
        channels, recipients, texts = ([way[n] for way in ways] for n in range(3))
        count = len(ways)
        await self._books.append(
            PUT, [key] * count, channels, recipients, [subject] * count, texts, [self._now()] * count
        )
