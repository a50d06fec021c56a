"""The message rail: one-time codes to phones."""

from __future__ import annotations

from typing import Protocol

from cuota.core.sandbox import CODE


class MessageRail(Protocol):
    """What CUOTA_MESSAGE_RAIL names; a class without arguments."""

    shown_code: str | None
    """A code that the pages may show because no message is really sent; None outside the sandbox."""

    def new_code(self) -> str:
        """Six digits, not to be guessed."""
        ...

    async def send_code(self, phone: str, code: str, sender: str) -> None:
        """Text the code to a ten-digit US number, in the name of `sender`."""
        ...


class SandboxMessageRail:
    """Sends nothing: the code is always 123456, as the sandbox's test table says, and the page shows it."""

    shown_code: str | None = CODE

    def new_code(self) -> str:
        """The one code of the sandbox."""
        return CODE

    async def send_code(self, phone: str, code: str, sender: str) -> None:
        """No message leaves a sandbox."""
        del phone, code, sender
