"""One exchange on a raw socket: sends exact bytes, and returns whatever comes back."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """The server's answer. Status 0 means that the server closed the connection without an answer."""

    status: int
    headers: dict[str, str]
    body: bytes
    closed: bool


SILENT = Answer(0, {}, b"", closed=True)


async def read_answer(reader: asyncio.StreamReader, *, head_only: bool = False) -> Answer:
    """Read one answer. Interim answers (1xx) are skipped."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return SILENT
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    status = int(first.split(" ")[1])
    if 100 <= status < 200:
        return await read_answer(reader, head_only=head_only)
    bare = head_only or status in {204, 304}
    body = b"" if bare else await _body(reader, headers)
    return Answer(status, headers, body, headers.get("connection", "") == "close" or reader.at_eof())


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    if headers.get("transfer-encoding") != "chunked":
        return await reader.read(-1)
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()
    return body


async def exchange(port: int, content: bytes, *, seconds: float = 20.0) -> Answer:
    """Send the bytes on a new connection. Raises TimeoutError if the server neither answers nor closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    try:
        async with asyncio.timeout(seconds):
            with contextlib.suppress(ConnectionError):
                writer.write(content)
                await writer.drain()
            return await read_answer(reader, head_only=content.startswith(b"HEAD "))
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
