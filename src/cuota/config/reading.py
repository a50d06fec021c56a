"""Functions that read the text of a setting.

Each raises ValueError if the text is not valid. The error says what the setting must be, and never repeats the text, because
the text may be a secret.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from cuota.core.consumer import is_email
from cuota.core.webhook.signature import WEBHOOK_PREFIX
from cuota.rails.senders import MailServer

Network = IPv4Network | IPv6Network
SECRET_BYTES = 32


def one_of(*values: str) -> Callable[[str], str]:
    """Return a reader for a setting that must be one of these words."""

    def read(text: str) -> str:
        if text not in values:
            raise ValueError(f"must be {' or '.join(values)}")
        return text

    return read


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a reader for a whole number from `low` to `high`."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return int(text)

    return read


def _split(text: str) -> SplitResult | None:
    """Return the parts of an address, or None if the text is not an address or its port is not valid."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts


def address(text: str) -> str:
    """Read an http or https address, and remove slashes at its end."""
    parts = _split(text)
    if (
        parts is None
        or parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.query
        or parts.fragment
    ):
        raise ValueError("must be an http or https address such as https://pay.example.com")
    if parts.username or parts.password:
        raise ValueError("must not contain a user name or password")
    return text.rstrip("/")


LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1", "[::1]"})


def is_loopback(host: str) -> bool:
    """True if the host name or address means this machine."""
    if host.lower() in LOOPBACK_NAMES:
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def url_host(host: str) -> str:
    """Return a host name or address as it is written in a URL: an IPv6 address gets brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


WILDCARDS = frozenset({"0.0.0.0", "::", "[::]"})  # noqa: S104 - recognized, not listened on


def is_wildcard(host: str) -> bool:
    """True if the host means all addresses of this machine. A process can listen on it, but a browser cannot open it."""
    return host in WILDCARDS


def own_address(host: str) -> str:
    """Return an address at which this machine reaches a program that listens on `host`."""
    if not is_wildcard(host):
        return host
    return "::1" if ":" in host else "127.0.0.1"


def hosts(text: str) -> frozenset[str]:
    """Read host names without ports, separated by commas."""
    names = frozenset(name.strip().lower() for name in text.split(","))
    if not all(
        re.fullmatch(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]+\]", name) for name in names
    ):
        raise ValueError(
            "must be host names without ports, separated by commas, such as shop.test,192.168.1.5"
        )
    return names


def addresses(text: str) -> tuple[str, ...]:
    """Read one or more addresses, separated by commas or spaces. Repeated addresses are removed; the order is kept."""
    named = re.split(r"[,\s]+", text.strip(", \t\n"))
    return tuple(dict.fromkeys(address(each) for each in named))


def database(text: str) -> str:
    """Read a PostgreSQL address in the form that asyncpg accepts. Several hosts are separated by commas."""
    scheme, _, rest = text.partition("://")
    hosts = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    if scheme not in {"postgres", "postgresql"} or not all(
        _split(f"{scheme}://{host}") for host in hosts.split(",")
    ):
        raise ValueError(
            "must be a PostgreSQL address such as postgresql://user:password@host:5432/cuota; "
            "you may list several hosts (host1:5432,host2:5432): the one that accepts writes is used"
        )
    return text


def secret(text: str) -> bytes:
    """Read the key in `CUOTA_SECRET_KEY`."""
    try:
        key = base64.b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != SECRET_BYTES or len(set(key)) < 8:
        raise ValueError("must be 32 random bytes in base64; create a key with: openssl rand -base64 32")
    return key


def secrets(text: str) -> tuple[bytes, ...]:
    """Read the keys in `CUOTA_SECRET_KEY_OLD`."""
    try:
        return tuple(secret(each.strip()) for each in text.split(","))
    except ValueError:
        raise ValueError("must be one or more keys of 32 bytes in base64, separated by commas") from None


def picture(text: str) -> Path:
    """Read the path of an existing picture file."""
    path = Path(text)
    if path.suffix.lower() not in {".svg", ".png"} or not path.is_file():
        raise ValueError("must be the path of an existing SVG or PNG file")
    return path


def accent(text: str) -> str:
    """Read a color."""
    if not re.fullmatch(r"#[0-9A-Fa-f]{6}", text):
        raise ValueError("must be a color such as #0B6E63")
    return text


def rail(*names: str, example: str) -> Callable[[str], str]:
    """Return a reader for the name of a built-in rail, or the dotted path of a class."""

    def read(text: str) -> str:
        if text not in names and not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", text):
            raise ValueError(f"must be {', '.join(names)}, or the dotted path of a class such as {example}")
        return text

    return read


def key_of(*prefixes: str) -> Callable[[str], str]:
    """Return a reader for a key of Stripe, which begins with one of these prefixes."""

    def read(text: str) -> str:
        rest = next((text.removeprefix(prefix) for prefix in prefixes if text.startswith(prefix)), "")
        if not re.fullmatch(r"[A-Za-z0-9_+/=-]{8,250}", rest, re.ASCII):
            raise ValueError(
                f"must begin with {' or '.join(prefixes)}; copy the whole key from Stripe's dashboard"
            )
        return text

    return read


def rails(*names: str, example: str) -> Callable[[str], tuple[str, ...]]:
    """Return a reader for the names of several rails, separated by commas."""
    one = rail(*names, example=example)
    return lambda text: tuple(one(each.strip()) for each in text.split(","))


def words(text: str) -> str:
    """Read a short text on one line."""
    if not 1 <= len(text) <= 60 or not text.isprintable():
        raise ValueError("must be 1 to 60 printable characters")
    return text


def line(text: str) -> str:
    """Read a text on one line that may be long enough for a name and an address."""
    if not 1 <= len(text) <= 200 or not text.isprintable():
        raise ValueError("must be 1 to 200 printable characters")
    return text


def mail_server(text: str) -> MailServer:
    """Read the address of a mail server: `smtp://` (default port 587) or `smtps://` (default port 465).

    User and password are percent-encoded.
    """
    parts = _split(text)
    plain = text.isascii() and text.isprintable() and " " not in text
    if parts is None or parts.scheme not in {"smtp", "smtps"} or not parts.hostname or not plain:
        raise ValueError("must be a mail server such as smtp://user:password@mail.example.com:587")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(
            "must end after the host and port, such as smtps://user:password@mail.example.com:465"
        )
    if bool(parts.username) != bool(parts.password):
        raise ValueError("must contain both a user name and a password, or neither")
    tls = parts.scheme == "smtps"
    user, password = (unquote(part) if part else None for part in (parts.username, parts.password))
    return MailServer(parts.hostname, parts.port or (465 if tls else 587), tls, user, password)


def networks(text: str) -> tuple[Network, ...]:
    """Read IP addresses and networks, separated by commas."""
    try:
        return tuple(ip_network(part.strip()) for part in text.split(","))
    except ValueError:
        raise ValueError("must be addresses or networks such as 10.0.0.7, 10.1.0.0/16") from None


def mailbox(text: str) -> str:
    """Read a mail address."""
    if not is_email(text):
        raise ValueError("must be a mail address such as pay@example.com")
    return text


def hook(text: str) -> str:
    """Read the address to which text messages are posted. It may have a query."""
    parts = _split(text)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname or parts.fragment:
        raise ValueError("must be an http or https address such as https://texts.example.com/send")
    if parts.username or parts.password:
        raise ValueError("must not contain a user name or password")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be percent-encoded ASCII")
    return text


def web_page(text: str) -> str:
    """Read the address of one of the operator's own pages, for a link."""
    parts = _split(text)
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must be an http or https address such as https://pay.example.com/help")
    if parts.username or parts.password or not text.isprintable() or " " in text:
        raise ValueError("must not contain a user name, a password or a space")
    return text


def hook_secret(text: str) -> str:
    """Read a secret in the format of Standard Webhooks."""
    try:
        key = base64.b64decode(text.removeprefix(WEBHOOK_PREFIX), validate=True)
    except ValueError:
        key = b""
    if not text.startswith(WEBHOOK_PREFIX) or not 24 <= len(key) <= 64 or len(set(key)) < 8:
        raise ValueError(
            "must be whsec_ and 24 to 64 random bytes in base64; create a secret with: echo whsec_$(openssl rand -base64 32)"
        )
    return text


def listen(text: str) -> tuple[str, int]:
    """Read `HOST:PORT` to listen on. An IPv6 address must be in brackets."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not host or not port.isascii() or not port.isdigit() or not int(port) <= 65535 or "/" in host:
        raise ValueError("must be an address and port such as 127.0.0.1:9464 or [::1]:9464")
    return host, int(port)
