"""A merchant's logo: checked by its content, and reduced to the picture itself.

Nothing is decoded, so a hostile picture finds no decoder to attack. Only the parts that a browser needs to draw the picture are kept:
no metadata (a photo may say where it was taken), and nothing after the picture's end.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass

from cuota.core.dispute.file_types import type_of

MOST_LOGO_BYTES = 100 * 1024
# The limits of each side. A few kilobytes can describe a picture that fills a phone's memory.
LEAST_PIXELS, MOST_PIXELS = 16, 1500
_PNG_HEAD = 8
_PNG_KEPT = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND", b"gAMA", b"cHRM", b"sRGB", b"sBIT", b"bKGD"}
_WEBP_KEPT = {b"VP8 ", b"VP8L", b"VP8X", b"ALPH"}
# The VP8X flag that is kept (alpha). The ICC profile, Exif, XMP and animation lose their flags and chunks.
_WEBP_FLAGS_LEFT = 0b00010000
# The segments APP1 to APP15 hold metadata; APP14 says how colors are stored. COM is a comment.
_JPEG_DROPPED = frozenset([*range(0xE1, 0xEE), 0xEF, 0xFE])
_JPEG_SCAN, _JPEG_END = 0xDA, 0xD9
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_DAMAGED = "The picture is damaged. Save it again with another program."
LOGO_TYPES = ("image/png", "image/jpeg", "image/webp")


class BadLogo(Exception):
    """The file cannot be a logo. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Logo:
    """A logo as it is stored and served. `digest` is the SHA-256 of the content, in hexadecimal digits."""

    media_type: str
    content: bytes
    digest: str


def read_logo(content: bytes) -> Logo:
    """Return the logo in a file. Raises BadLogo."""
    if not content:
        raise BadLogo("Choose a file: a PNG, JPEG or WebP picture.")
    if len(content) > MOST_LOGO_BYTES:
        raise BadLogo(f"The file is larger than {MOST_LOGO_BYTES // 1024} KiB. Make the picture smaller.")
    media_type = type_of(content)
    if media_type not in LOGO_TYPES:
        raise BadLogo("The file is not a PNG, JPEG or WebP picture, or it is damaged.")
    try:
        kept, size = _READERS[media_type](content)
    except (struct.error, IndexError, ValueError):
        raise BadLogo(_DAMAGED) from None
    if not all(LEAST_PIXELS <= each <= MOST_PIXELS for each in size):
        raise BadLogo(
            f"The picture has {size[0]} by {size[1]} pixels. Each side must have {LEAST_PIXELS} to {MOST_PIXELS:,}."
        )
    return Logo(media_type, kept, hashlib.sha256(kept).hexdigest())


_Kept = tuple[bytes, tuple[int, int]]


def _png(content: bytes) -> _Kept:
    size = struct.unpack_from(">II", content, 16)
    parts, at = [content[:_PNG_HEAD]], _PNG_HEAD
    while True:
        (length,) = struct.unpack_from(">I", content, at)
        kind, end = content[at + 4 : at + 8], at + 12 + length
        if kind in _PNG_KEPT:
            parts.append(content[at:end])
        if kind == b"IEND":
            return b"".join(parts), size
        at = end


def _jpeg(content: bytes) -> _Kept:
    parts, at, size = [content[:2]], 2, (0, 0)
    while True:
        marker = content[at + 1]
        if content[at] != 0xFF:
            raise BadLogo(_DAMAGED)
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        if marker == _JPEG_END:
            return b"".join([*parts, content[at : at + 2]]), size
        (length,) = struct.unpack_from(">H", content, at + 2)
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", content, at + 5)
            size = (width, height)
        # A progressive picture has several scans, with segments between them.
        end = _scan_end(content, at + 2 + length) if marker == _JPEG_SCAN else at + 2 + length
        if marker not in _JPEG_DROPPED:
            parts.append(content[at:end])
        at = end


def _scan_end(content: bytes, at: int) -> int:
    """Return where the next marker begins. In a scan, FF is followed by 00, or by a restart marker's number."""
    while True:
        at = content.index(b"\xff", at)
        if content[at + 1] != 0x00 and not 0xD0 <= content[at + 1] <= 0xD7:
            return at
        at += 2


def _webp(content: bytes) -> _Kept:
    end, at, size = 8 + struct.unpack_from("<I", content, 4)[0], 12, (0, 0)
    parts: list[bytes] = []
    while at + 8 <= end:
        kind, (length,) = content[at : at + 4], struct.unpack_from("<I", content, at + 4)
        body = content[at + 8 : at + 8 + length]
        if len(body) < length:
            raise BadLogo(_DAMAGED)
        if kind == b"ANMF":
            raise BadLogo("The picture is an animation. Use one that does not move.")
        if kind == b"VP8X":
            size = (1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little"))
            body = bytes([body[0] & _WEBP_FLAGS_LEFT]) + body[1:]
        elif kind in {b"VP8 ", b"VP8L"} and size == (0, 0):
            size = _webp_size(kind, body)
        if kind in _WEBP_KEPT:
            parts.append(kind + struct.pack("<I", length) + body + b"\0" * (length % 2))
        at += 8 + length + length % 2
    whole = b"WEBP" + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(whole)) + whole, size


def _webp_size(kind: bytes, body: bytes) -> tuple[int, int]:
    if kind == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", body, 6)
    return width & 0x3FFF, height & 0x3FFF


_READERS: dict[str, Callable[[bytes], _Kept]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
}
