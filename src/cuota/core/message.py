"""A message to a consumer, in the form that a message rail receives."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Message:
    """A message. `key` is an idempotency key: a rail that gets the same key twice may send the message only once.

    `phone` is a ten-digit US number, `email` an address; either may be None. `sender` is the name that consumers know.
    `urgent`: the consumer is waiting for it, so it goes to the phone if there is one, even if an e-mail is possible. `attached`
    follows the text in an e-mail. It is too long for a text message, and the consumer need not act on it.
    """

    key: UUID
    phone: str | None
    email: str | None
    sender: str
    subject: str
    text: str
    attached: str = ""
    urgent: bool = False

    @property
    def mail_text(self) -> str:
        """Return the full text for an e-mail."""
        return f"{self.text}\n\n{self.attached}" if self.attached else self.text
