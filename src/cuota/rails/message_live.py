"""The `live` message rail: sends texts through an HTTP hook, and e-mail through SMTP.

Logs and exceptions contain no text, code, number or address.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import ssl
import time
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import localtime
from uuid import UUID, uuid4

import aiosmtplib
import httpcore

from cuota.core.consumer import is_email, is_us_number
from cuota.core.message import Message
from cuota.core.webhook.signature import webhook_signature
from cuota.rails.bounded import MESSAGE_SECONDS
from cuota.rails.message import code_text
from cuota.rails.senders import MailServer
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailDatabase, RailVault
from cuota.rails.unavailable import RailUnavailable

HOOK_SECONDS = 10.0
MAIL_SECONDS = 14.0
GOODBYE_SECONDS = 1.0
# These timeouts are shorter than the rail's own, so that the error says which server did not answer.
assert max(HOOK_SECONDS, MAIL_SECONDS) < MESSAGE_SECONDS
CODE_DIGITS = 6


class LiveMessageRail:
    """Sends real messages. TLS certificates are verified against the system's CAs, or those in SSL_CERT_FILE."""

    shown_code: str | None = None

    def __init__(self, settings: RailSettings, books: RailDatabase, vault: RailVault, now: Clock) -> None:
        """Raise ValueError if the settings do not say how to send."""
        del books, vault, now
        if settings.senders is None:
            raise ValueError("needs CUOTA_TEXT_HOOK_URL and CUOTA_TEXT_HOOK_SECRET")
        self._senders = settings.senders
        self._tls = ssl.create_default_context()

    def new_code(self) -> str:
        """Return six digits from the system's random generator."""
        return f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"

    async def send_code(self, phone: str, code: str, sender: str) -> None:
        """Send the code by text message. Raises RailUnavailable."""
        await self._text(uuid4(), phone, code_text(code, sender))

    async def send(self, message: Message) -> None:
        """Send the notice by e-mail if possible, otherwise by text, but never both ways. Raises RailUnavailable.

        An urgent notice goes by text if possible.
        """
        by_text = message.urgent and message.phone is not None
        if message.email is not None and self._senders.mail is not None and not by_text:
            await self._mail(self._senders.mail, message, message.email)
        elif message.phone is not None:
            await self._text(message.key, message.phone, message.text)
        else:
            raise RailUnavailable(
                "the consumer cannot be reached: there is no phone number, and no mail server is set"
            )

    async def _text(self, key: UUID, phone: str, text: str) -> None:
        if not is_us_number(phone):
            raise RailUnavailable("the phone number is not a US number")
        body = json.dumps({"id": str(key), "to": f"+1{phone}", "text": text}, ensure_ascii=False).encode()
        # The receiver compares this time with its own clock, so it must be the real time, not the service's.
        now = int(time.time())
        headers = [
            ("Content-Type", "application/json"),
            ("User-Agent", "Cuota"),
            ("webhook-id", str(key)),
            ("webhook-timestamp", str(now)),
            ("webhook-signature", webhook_signature([self._senders.hook_secret], str(key), now, body)),
        ]
        try:
            async with asyncio.timeout(HOOK_SECONDS):
                status = await self._post(headers, body)
        except TimeoutError:
            raise RailUnavailable(f"the text hook did not answer in {HOOK_SECONDS:.0f} seconds") from None
        except (
            httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException,
            httpcore.UnsupportedProtocol, OSError, ValueError,
        ) as problem:  # fmt: skip
            raise RailUnavailable(f"the text hook cannot be reached ({type(problem).__name__})") from None
        if not 200 <= status <= 299:
            raise RailUnavailable(f"the text hook answered {status}")

    async def _post(self, headers: list[tuple[str, str]], body: bytes) -> int:
        # Each text gets a new connection, so that none is stale and none is left open. Redirects are not followed.
        async with (
            httpcore.AsyncConnectionPool(ssl_context=self._tls) as pool,
            pool.stream("POST", self._senders.hook_url, headers=headers, content=body) as answer,
        ):
            return answer.status

    async def _mail(self, server: MailServer, message: Message, recipient: str) -> None:
        sender = self._senders.mail_from
        assert sender is not None
        letter = compose(message, recipient, sender)
        try:
            async with asyncio.timeout(MAIL_SECONDS):
                await self._deliver(server, sender, recipient, letter)
        except TimeoutError:
            raise RailUnavailable(f"the mail server did not answer in {MAIL_SECONDS:.0f} seconds") from None
        except aiosmtplib.SMTPRecipientsRefused as problem:
            codes = ", ".join(str(refused.code) for refused in problem.recipients)
            raise RailUnavailable(f"the mail server refused the address ({codes})") from None
        except aiosmtplib.SMTPResponseException as problem:
            raise RailUnavailable(f"the mail server refused the message ({problem.code})") from None
        except (aiosmtplib.SMTPException, OSError, ValueError) as problem:
            raise RailUnavailable(f"the mail server cannot be used ({type(problem).__name__})") from None

    async def _deliver(self, server: MailServer, sender: str, recipient: str, letter: EmailMessage) -> None:
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            username=server.user,
            password=server.password,
            # Do not send this machine's name: looking it up can take long, and the mail server should not learn it.
            local_hostname=sender.partition("@")[2],
            timeout=MAIL_SECONDS,
            use_tls=server.tls,
            # None means STARTTLS if the server offers it. True means that nothing is sent without STARTTLS.
            start_tls=False if server.tls else True if self._senders.secure else None,
            tls_context=self._tls,
        )
        try:
            await client.connect()
            await client.sendmail(sender, [recipient], letter.as_bytes())
            # The server has accepted the e-mail. An error while closing must not cause a second send.
            with contextlib.suppress(aiosmtplib.SMTPException, OSError, TimeoutError):
                async with asyncio.timeout(GOODBYE_SECONDS):
                    await client.quit()
        finally:
            client.close()


def compose(message: Message, recipient: str, mail_from: str) -> EmailMessage:
    """Return the e-mail. No part of a text can become a header. Raises RailUnavailable if the address is not valid."""
    if not is_email(recipient):
        raise RailUnavailable("the mail address is not valid")
    letter = EmailMessage(policy=SMTP_POLICY)
    try:
        letter["From"] = Address(_one_line(message.sender), addr_spec=mail_from)
        letter["To"] = Address(addr_spec=recipient)
        letter["Subject"] = _one_line(message.subject)
        letter["Date"] = localtime()
        # A repeated notice gets the same Message-ID, so that mailboxes show it only once.
        letter["Message-ID"] = f"<{message.key}@{mail_from.partition('@')[2]}>"
        letter["Auto-Submitted"] = "auto-generated"
        letter.set_content(message.mail_text)
    except (MessageError, ValueError) as problem:
        raise RailUnavailable(f"the mail cannot be written ({type(problem).__name__})") from None
    return letter


def _one_line(text: str) -> str:
    """Replace every control character and line break with a space."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
