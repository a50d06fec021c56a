"""Small pictures, made of their parts. `extra` is put among the parts that draw the picture."""

from __future__ import annotations

import struct
import zlib


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int = 64, height: int = 32, extra: bytes = b"") -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = zlib.compress(b"".join(b"\0" + b"\x80" * min(width, 64) for _ in range(min(height, 64))))
    return b"\x89PNG\r\n\x1a\n" + head + extra + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def segment(marker: int, body: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def jpeg(width: int = 64, height: int = 32, extra: bytes = b"") -> bytes:
    frame = segment(0xC2, struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\x00")
    scan = segment(0xDA, b"\x01\x01\x00\x00\x3f\x00") + b"\x12\xff\x00\x34\xff\xd0\x56"
    return b"\xff\xd8" + segment(0xE0, b"JFIF\0") + extra + frame + scan + extra + scan + b"\xff\xd9"


def riff(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def webp(width: int = 64, height: int = 32, extra: bytes = b"", flags: int = 0) -> bytes:
    extended = riff(
        b"VP8X",
        bytes([flags, 0, 0, 0]) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
    )
    picture = b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", width, height) + b"abc"
    body = b"WEBP" + extended + extra + riff(b"VP8 ", picture)
    return b"RIFF" + struct.pack("<I", len(body)) + body
