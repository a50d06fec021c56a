"""The settings of the `live` message rail: a mail server, and a hook for text messages."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MailServer:
    """An SMTP server and its login. `tls` means TLS from the first byte (smtps://); otherwise STARTTLS."""

    host: str
    port: int
    tls: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Senders:
    """`mail` and `mail_from` are both set or both None. Texts are posted to `hook_url`, which may contain a secret."""

    mail: MailServer | None
    mail_from: str | None
    hook_url: str = field(repr=False)
    hook_secret: str = field(repr=False)
    secure: bool
    """True in production: e-mail is sent only over an encrypted connection."""
