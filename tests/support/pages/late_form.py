"""A form of which the service gets the head first, and the body only after something else has happened."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from support.hostile.wire import Answer, read_answer

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


async def send_late(
    http: httpx.AsyncClient,
    path: str,
    meanwhile: Callable[[], Awaitable[object]],
    *,
    method: str = "POST",
    **form: Any,
) -> Answer:
    """Send the head of a form or of another body, wait until the service asks for the body, await `meanwhile`, and then send the body.

    A service that answers before it has read the form gets no body. Then `meanwhile` is not awaited.
    """
    request = http.build_request(method, path, **form)
    content = await request.aread()
    lines = [f"{name}: {value}" for name, value in request.headers.items() if name != "connection"]
    head = "\r\n".join(
        [f"{method} {path} HTTP/1.1", *lines, "Expect: 100-continue", "Connection: close", "", ""]
    ).encode()
    port = http.base_url.port
    assert port is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head)
        first = await reader.readexactly(len(_CONTINUE))
        if first == _CONTINUE:
            await meanwhile()
            writer.write(content)
        else:
            rest = await reader.read(-1)
            reader = asyncio.StreamReader()
            reader.feed_data(first + rest)
            reader.feed_eof()
        return await read_answer(reader)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
