"""A load balancer in front of several web machines: each request goes to another machine, as with nginx's round robin."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

# Headers of one connection (RFC 9110, section 7.6.1), and those that the server writes again.
_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"date", b"server"}
_TIMEOUT = httpx.Timeout(60).as_dict()


class Balancer:
    """Sends each request to the next machine. `machines` may change between requests. A machine that cannot be reached, or that drains
    (its connection is refused), is left out for this request. `answered` counts the answers of each machine, and `errors`
    has each answer 500."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.machines: list[str] = []
        self.answered: Counter[str] = Counter()
        self.errors: list[str] = []
        self._port = port
        self._turn = itertools.count()
        # A new connection for each request: a machine that has ended is never asked on an old one.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.AsyncHTTPTransport(verify=False, limits=limits)

    async def __call__(self, request: Request) -> Response:
        body = await request.body()
        machines = list(self.machines)
        first = next(self._turn)
        for at in range(len(machines)):
            machine = machines[(first + at) % len(machines)]
            try:
                return await self._forwarded(machine, request, body)
            except httpx.ConnectError:
                continue
        return JSONResponse({"message": "no machine"}, 503)

    async def _forwarded(self, machine: str, request: Request, body: bytes) -> Response:
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        headers = [pair for pair in request.headers.raw if pair[0].lower() not in _HOP]
        asked = httpx.Request(
            request.method, machine + path, content=body, headers=headers, extensions={"timeout": _TIMEOUT}
        )
        answer = await self._http.handle_async_request(asked)
        await answer.aread()
        await answer.aclose()
        self.answered[machine] += 1
        if answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR:
            self.errors.append(f"{machine} answered 500 to {request.method} {path}: {answer.text[:300]}")
        made = Response(answer.content, answer.status_code)
        kept = [(name.lower(), value) for name, value in answer.headers.raw if name.lower() not in _HOP]
        made.raw_headers = [
            *(pair for pair in kept if pair[0] != b"content-encoding"),
            (b"content-length", str(len(answer.content)).encode()),
        ]
        return made

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Answer at the address until the block ends."""
        app: Any = Starlette()
        app.add_route(
            "/{path:path}",
            self.__call__,
            methods=["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"],
        )
        server = uvicorn.Server(uvicorn.Config(app, port=self._port, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(30)
