"""Changes random bytes in the heads and bodies of valid requests. A seed determines all changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote_plus

from cuota.core.webhook.signature import pay_signature

Head = tuple[tuple[str, str], ...]
REFERENCE = b"%REFERENCE%"
LONGEST = 600_000
_IN_BODY = (
    b"\x00", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\u0000", b"\\ud800", b'"', b"\\", b"{", b"}", b"[",
    b"]", b",", b":", b"null", b"true", b"NaN", b"-Infinity", b"1e400", b"-0", b"1e-400", b"9" * 400, b"0.001", b"\r\n",
    b"%00", b"%ff", b"+", b"&", b"=", b"[0]", b"\xe2\x80\xae", b"\xd9\xa3", b'{"a":' * 40, b"[" * 40, b"'; --", b"<script>",
    b"${7*7}", b"a" * 5_000, b" " * 5_000, b'"amount":1,', b"../", b"__proto__",
)  # fmt: skip
_IN_HEAD = (
    b"\x00", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b":", b" ", b"\t", b"\xff", b"%", b"%00", b"%2e%2e%2f", b"%ff", b"?", b"#",
    b";", b",", b'"', b"//", b"/../", b"a" * 3_000, b"a" * 40_000, b"X-A: b\r\n" * 500, b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Host: y\r\n", b"Connection: upgrade\r\nUpgrade: h2c\r\n",
    b"Connection: close\r\n", b"Idempotency-Key: \r\n", b"Idempotency-Key: k\r\n", b"Content-Encoding: gzip\r\n",
    b"Authorization: Bearer x\r\n", b"Range: bytes=0-1\r\n", b"HTTP/1.0", b"HTTP/2.0", b"DELETE ", b"CONNECT ", b"0", b"-1",
)  # fmt: skip


@dataclass(frozen=True)
class Seed:
    """A valid request. `secret` signs what is sent: in a field for `form` and `query`, in a header for `header`."""

    name: str
    method: str
    path: str
    headers: Head = ()
    body: bytes = b""
    secret: str = ""
    signed: str = ""
    # Every change must keep these parts of the body. Otherwise the request is refused too early to test the rest.
    kept: bytes = b""


@dataclass(frozen=True)
class Request:
    """The bytes to send. `whole`: the framing is right, so the request must be answered. `head`: the head was changed."""

    seed: Seed
    content: bytes
    body: bytes
    whole: bool
    head: bool
    changed: bool
    number: int


def mutated(content: bytes, dice: random.Random, words: tuple[bytes, ...]) -> bytes:
    """Make a few changes, one after the other."""
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        content = dice.choice(_CHANGES)(content, dice, words)
    return content


def _span(content: bytes, dice: random.Random) -> tuple[int, int]:
    start = dice.randrange(len(content) + 1)
    return start, min(len(content), start + dice.choice((1, 1, 2, 4, 16, 64)))


def _flip(content: bytes, dice: random.Random, words: tuple[bytes, ...]) -> bytes:
    if not content:
        return b"\x00"
    at = dice.randrange(len(content))
    return content[:at] + bytes([content[at] ^ (1 << dice.randrange(8))]) + content[at + 1 :]


def _cut(content: bytes, dice: random.Random, words: tuple[bytes, ...]) -> bytes:
    start, end = _span(content, dice)
    return content[:start] + content[end:]


def _double(content: bytes, dice: random.Random, words: tuple[bytes, ...]) -> bytes:
    start, end = _span(content, dice)
    return content[:end] + content[start:end] * dice.choice((1, 1, 2, 50)) + content[end:]


def _insert(content: bytes, dice: random.Random, words: tuple[bytes, ...]) -> bytes:
    at = dice.randrange(len(content) + 1)
    return content[:at] + dice.choice(words) + content[at:]


def _replace(content: bytes, dice: random.Random, words: tuple[bytes, ...]) -> bytes:
    start, end = _span(content, dice)
    return content[:start] + dice.choice(words) + content[end:]


def _noise(content: bytes, dice: random.Random, words: tuple[bytes, ...]) -> bytes:
    start, end = _span(content, dice)
    return content[:start] + dice.randbytes(end - start) + content[end:]


def _end(content: bytes, dice: random.Random, words: tuple[bytes, ...]) -> bytes:
    return content[: dice.randrange(len(content) + 1)]


def _swell(content: bytes, dice: random.Random, words: tuple[bytes, ...]) -> bytes:
    # Exceed the largest allowed body only rarely. These tests are not about the transfer of large bodies.
    return content + content * dice.choice((1, 2, 9)) + (b" " * 262_144 if dice.random() < 0.05 else b"")


_CHANGES: tuple[Callable[[bytes, random.Random, tuple[bytes, ...]], bytes], ...] = (
    _flip, _flip, _cut, _double, _insert, _insert, _replace, _replace, _noise, _end, _swell,
)  # fmt: skip


def made(seed: Seed, number: int, dice: random.Random, *, change: bool) -> Request:
    """Make one request of a seed. Without `change`, it is a control request, which must be accepted."""
    body = seed.body.replace(REFERENCE, b"r%d-%08x" % (number, dice.getrandbits(32)))
    headers, path = list(seed.headers), seed.path
    in_body = change and (
        dice.random() < 0.6 if seed.body else seed.signed == "query" and dice.random() < 0.6
    )
    if in_body:
        # An answer that is sent while the request is still arriving may get lost. The server reads only a limited part
        # of the rest.
        body = mutated(body, dice, _IN_BODY).replace(seed.kept, b"")[:LONGEST] + seed.kept
    # Most requests are signed after the change, as by a malicious merchant. A wrong signature would be refused early.
    if seed.signed and (not change or dice.random() < 0.8):
        body, more = _signed(seed, body)
        headers += more
    if seed.signed == "query":
        # The fields are part of the address, which allows only some bytes.
        path, body = f"{seed.path}?{_plain(body)}", b""
    honest = not in_body or dice.random() < 0.9
    if body or seed.method == "POST":
        length = len(body) if honest else dice.choice((0, 1, len(body) + 7, max(0, len(body) - 3)))
        headers.append(("Content-Length", str(length)))
        honest = length == len(body)
    lines = [
        f"{seed.method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        *(f"{name}: {value}" for name, value in headers),
    ]
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    in_head = change and (not in_body or dice.random() < 0.1)
    if in_head:
        head = mutated(head, dice, _IN_HEAD)
    return Request(seed, head + body, body, honest and not in_head, in_head, change, number)


def _plain(content: bytes) -> str:
    return "".join(chr(byte) if 0x21 <= byte < 0x7F and byte != 0x23 else f"%{byte:02x}" for byte in content)


def _signed(seed: Seed, body: bytes) -> tuple[bytes, list[tuple[str, str]]]:
    if seed.signed == "header":
        return body, [("X-Pay-Signature", pay_signature(seed.secret, body))]
    fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=None)
    text = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in sorted(fields))
    return body + b"&signature=" + quote_plus(pay_signature(seed.secret, text.encode())).encode(), []


def barrage(seeds: list[Seed], count: int, seed: int, control: int = 40) -> Iterable[Request]:
    """Make this many requests; one in `control` is unchanged. The same seed makes the same requests."""
    for number in range(count):
        dice = random.Random(f"{seed}-{number}")
        yield made(seeds[number % len(seeds)], number, dice, change=bool((number // len(seeds)) % control))
