"""A download of which a test sees each part before the next one is read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from cuota.core.refusal import Refused
from support.makers import Running


@dataclass
class Download:
    """The parts that arrived, and whether the answer was complete."""

    status: int = 0
    parts: list[bytes] = field(default_factory=list)
    complete: bool = False

    @property
    def text(self) -> str:
        return b"".join(self.parts).decode()


async def watch(
    service: Running, request: httpx.Request, each: Callable[[Download], Awaitable[object]]
) -> Download:
    """Send the request to the application, and await `each` after every part of the answer's body."""
    seen, content = Download(), await request.aread()
    scope: dict[str, Any] = {
        "type": "http", "http_version": "1.1", "method": request.method, "scheme": request.url.scheme,
        "path": request.url.path, "raw_path": request.url.raw_path, "query_string": request.url.query, "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", request.url.port),
    }  # fmt: skip
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            # The client stays connected.
            await asyncio.Event().wait()
        asked = True
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            seen.status = message["status"]
            return
        seen.complete = not message.get("more_body", False)
        if message.get("body"):
            seen.parts.append(message["body"])
            await each(seen)

    try:
        await service.app(scope, receive, send)
    except* Refused:
        # The server closes the connection after an exception, so that the client knows that the file is not complete.
        assert not seen.complete
    return seen
