"""A message to a consumer, as a message rail is asked to send it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Message:
    """`key` is an idempotency key: a rail that was asked twice under one key may send once.

    `phone` is a ten-digit US number, `email` an address; either may be None. `sender` is the name that consumers know.
    `attached` is what a mail says after the text: too long for a text message, and nothing that must be acted on.
    """

    key: UUID
    phone: str | None
    email: str | None
    sender: str
    subject: str
    text: str
    attached: str = ""

    @property
    def mail_text(self) -> str:
        """The text as a mail says it."""
        return f"{self.text}\n\n{self.attached}" if self.attached else self.text
