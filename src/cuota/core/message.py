"""A message to a consumer, in the form that a message rail gets."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Message:
    """A message. `key` is an idempotency key: a rail that gets the same key twice may send the message once.

    `phone` is a ten-digit US number, `email` an address; either may be None. `sender` is the name that consumers know.
    `urgent`: the consumer waits for it now, so it goes to the phone if there is one, even if a mail is possible. `attached`
    follows the text in a mail. It is too long for a text message, and the consumer need not act on it.
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
        """Return the full text for a mail."""
        return f"{self.text}\n\n{self.attached}" if self.attached else self.text
