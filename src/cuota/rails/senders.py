"""By which ways the `live` message rail sends, as the settings name them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MailServer:
    """An SMTP server and how to log in. `tls`: from the first byte (smtps://); otherwise STARTTLS."""

    host: str
    port: int
    tls: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Senders:
    """`mail` and `mail_from` are both there or both None. `hook_url` takes texts; it may carry a secret itself."""

    mail: MailServer | None
    mail_from: str | None
    hook_url: str = field(repr=False)
    hook_secret: str = field(repr=False)
    secure: bool
    """Production: mail only through an encrypted connection."""
