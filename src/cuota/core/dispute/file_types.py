"""Recognizes the type of a file by its content: a known signature, and the structure that must follow it.

No library does this: the existing libraries check only the signature, and any file can begin with one. This module
decodes nothing, so a hostile picture has no decoder to attack.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable

_PNG = b"\x89PNG\r\n\x1a\n"
_IMAGES = {b"VP8 ", b"VP8L", b"ANMF"}
_PDF_BEGINS = re.compile(rb"%PDF-[12]\.[0-9][\r\n \t]")
_PDF_OBJECT = re.compile(rb"[0-9] [0-9]{1,5} obj\b")
_PDF_ENDS = re.compile(rb"startxref\s+[0-9]+\s+%%EOF")
# Programs may append data after the end of a PDF, but not much.
_PDF_TAIL = 2048
# The markers of a JPEG's frame header (SOF). C4, C8 and CC have other meanings.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# Markup and programs can be UTF-8 text too. A browser or a system could run them if a person opens the file.
_PROGRAM = re.compile(r"\s*+(?:%PDF|%!PS|GIF8|RIFF|\{\\rtf|#!|<\?|<!)", re.IGNORECASE)
# The pattern is for a text in lower case. A search that ignores case takes eight times as long, and meanwhile no other
# request is answered.
_MARKUP = re.compile(r"<(?:!doctype|html|head|body|script|svg|iframe|style|object|embed|math)[\s>/]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
# A picture has at most this many chunks or segments. A real picture has hundreds; a hostile picture may have a million,
# and each of them takes time.
MOST_PIECES = 10_000
_ZIP_END = b"PK\x05\x06"


def type_of(content: bytes) -> str | None:
    """Return the media type of the content, or None if Cuota does not accept the type."""
    if _ends_as_zip(content):
        return None
    for name, begins, is_whole in _TYPES:
        if begins(content):
            return name if is_whole(content) else None
    return "text/plain" if _is_text(content) else None


def _is_png(content: bytes) -> bool:
    """Return whether the chunks up to IEND are complete: a header with a size, and a picture."""
    at, has_picture = len(_PNG), False
    for _ in range(MOST_PIECES):
        if at + 12 > len(content):
            return False
        (size,) = struct.unpack_from(">I", content, at)
        kind, end = content[at + 4 : at + 8], at + 12 + size
        if end > len(content) or (at == len(_PNG)) != (kind == b"IHDR"):
            return False
        if zlib.crc32(memoryview(content)[at + 4 : end - 4]) != struct.unpack_from(">I", content, end - 4)[0]:
            return False
        if kind == b"IHDR" and (size != 13 or not all(struct.unpack_from(">II", content, at + 8))):
            return False
        if kind == b"IEND":
            return has_picture
        has_picture, at = has_picture or (kind == b"IDAT" and size > 0), end
    return False


def _is_jpeg(content: bytes) -> bool:
    """Return whether complete segments lead to a frame with a size and to a complete picture.

    Data after the end is allowed, because phones append some.
    """
    at, has_frame = 2, False
    for _ in range(MOST_PIECES):
        if at + 4 > len(content) or content[at] != 0xFF:
            return False
        marker = content[at + 1]
        if marker == 0xFF:  # this is a fill byte
            at += 1
            continue
        (size,) = struct.unpack_from(">H", content, at + 2)
        if size < 2 or at + 2 + size > len(content):
            return False
        if marker in _JPEG_FRAMES:
            if size < 8:
                return False
            has_frame = struct.unpack_from(">H", content, at + 7)[0] > 0
        at += 2 + size
        if marker == 0xDA:  # the picture follows, up to the marker EOI
            return has_frame and content.find(b"\xff\xd9", at) > at
    return False


def _is_webp(content: bytes) -> bool:
    """Return whether the chunks of the container are complete, and one of them is a picture."""
    end = 8 + struct.unpack_from("<I", content, 4)[0]
    if end > len(content) or end < 20:
        return False
    at, has_picture = 12, False
    for _ in range(MOST_PIECES):
        if at + 8 > end:
            return has_picture
        kind, (size,) = content[at : at + 4], struct.unpack_from("<I", content, at + 4)
        if at + 8 + size > end:
            return False
        if at == 12 and kind not in {b"VP8 ", b"VP8L", b"VP8X"}:
            return False
        has_picture = has_picture or (kind in _IMAGES and size > 0)
        at += 8 + size + size % 2
    return False


def _is_pdf(content: bytes) -> bool:
    """Return whether there is an object, and the end of the file names the position of a table of objects."""
    if not _PDF_BEGINS.match(content) or not _PDF_OBJECT.search(content):
        return False
    return _PDF_ENDS.search(content, max(0, len(content) - _PDF_TAIL)) is not None


def _is_text(content: bytes) -> bool:
    """Return whether this is plain UTF-8 text, without control characters, markup or a program."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return False
    return bool(text.strip()) and not (
        _CONTROLS.search(text) or _PROGRAM.match(text) or _MARKUP.search(text.lower())
    )


def _ends_as_zip(content: bytes) -> bool:
    """Return whether a ZIP archive (or a Java or Office file) hides in a file of another type.

    The archive's directory is at the end.
    """
    at = content.rfind(_ZIP_END, max(0, len(content) - 65557))
    return at >= 0 and at + 22 <= len(content) <= at + 22 + struct.unpack_from("<H", content, at + 20)[0]


_TYPES: tuple[tuple[str, Callable[[bytes], bool], Callable[[bytes], bool]], ...] = (
    ("application/pdf", lambda content: content.startswith(b"%PDF-"), _is_pdf),
    ("image/png", lambda content: content.startswith(_PNG), _is_png),
    ("image/jpeg", lambda content: content.startswith(b"\xff\xd8\xff"), _is_jpeg),
    ("image/webp", lambda content: content[:4] == b"RIFF" and content[8:12] == b"WEBP", _is_webp),
)
