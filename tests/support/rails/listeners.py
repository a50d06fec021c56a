"""The servers that the live message rail calls: a mail server and a text hook, on real loopback sockets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Start a listener on a free port. At the end of the block, all of its connections are closed."""
    under_way: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        try:
            await serve(reader, writer)
            writer.close()
            await writer.wait_closed()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
            pass  # the client has disconnected, or the test is over
        finally:
            writer.transport.abort()
            under_way.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        ending = list(under_way)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await asyncio.sleep(0.01)  # the event loop closes the sockets of aborted connections one turn later


@dataclass
class Mailed:
    """One mail, as the server received it."""

    sender: str
    recipients: list[str]
    content: bytes
    encrypted: bool
    login: tuple[str, str] | None

    @property
    def mail(self) -> EmailMessage:
        parsed = message_from_bytes(self.content, policy=default)
        assert isinstance(parsed, EmailMessage)
        return parsed


@dataclass
class MailListener:
    """An SMTP server. `replies` replaces the answer to a verb; a verb in `hangs` gets no answer."""

    starttls: ssl.SSLContext | None = None
    replies: dict[str, str] = field(default_factory=dict)
    hangs: frozenset[str] = frozenset()
    taken: list[Mailed] = field(default_factory=list)
    verbs: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        encrypted = writer.get_extra_info("ssl_object") is not None
        login: tuple[str, str] | None = None
        sender, recipients = "", list[str]()
        await _say(writer, "220 mail.test ready")
        while line := (await reader.readline()).decode("ascii").strip():
            verb = line.split(":")[0].upper() if ":" in line else line.split()[0].upper()
            self.verbs.append(verb)
            if verb in self.hangs:
                await asyncio.Event().wait()
            if verb in self.replies:
                await _say(writer, self.replies[verb])
                continue
            if verb == "EHLO":
                offered = ["250-mail.test", "250-AUTH PLAIN LOGIN"]
                offered += ["250-STARTTLS"] if self.starttls and not encrypted else []
                await _say(writer, "\r\n".join([*offered, "250 8BITMIME"]))
                continue
            if verb == "STARTTLS" and self.starttls:
                await _say(writer, "220 go on")
                await writer.start_tls(self.starttls)
                encrypted = True
                continue
            if verb == "AUTH":
                _, user, password = base64.b64decode(line.split()[2]).decode().split("\0")
                login = (user, password)
                await _say(writer, "235 welcome")
                continue
            if verb == "DATA":
                await _say(writer, "354 go on")
                content = await reader.readuntil(b"\r\n.\r\n")
                self.taken.append(
                    Mailed(sender, recipients, content[:-3].replace(b"\n..", b"\n."), encrypted, login)
                )
            elif verb == "MAIL FROM":
                sender, recipients = line[line.index("<") + 1 : line.index(">")], []
            elif verb == "RCPT TO":
                recipients.append(line[line.index("<") + 1 : line.index(">")])
            await _say(writer, "221 bye" if verb == "QUIT" else "250 done")


async def _say(writer: asyncio.StreamWriter, line: str) -> None:
    writer.write(line.encode() + b"\r\n")
    await writer.drain()


@dataclass
class Hook:
    """A text hook. It stores what was posted, and answers `status`, or nothing if `status` is None."""

    status: int | None = 204
    headers: str = ""
    posted: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii")
        first, *lines = head.strip().split("\r\n")
        assert first.startswith("POST /send?key=k%201 HTTP/1.1")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.posted.append((headers, await reader.readexactly(int(headers["content-length"]))))
        if self.status is None:
            await asyncio.Event().wait()
        writer.write(f"HTTP/1.1 {self.status} So\r\nContent-Length: 0\r\n{self.headers}\r\n".encode())
        await writer.drain()


def certified(folder: Path, name: str = "127.0.0.1") -> tuple[ssl.SSLContext, Path]:
    """Make TLS for a server with a new certificate. Return it with the file that a client needs to trust it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    names: list[Any] = [x509.IPAddress(IPv4Address(name))] if name[0].isdigit() else [x509.DNSName(name)]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = made.public_bytes(serialization.Encoding.PEM)
    path.write_bytes(private + public)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    trusted = folder / f"{name}-trusted.pem"
    trusted.write_bytes(public)
    return context, trusted
