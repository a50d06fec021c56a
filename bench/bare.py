"""The limit of the web layer: the service's own edge, framework and server, without authentication, flows and SQL.

Each endpoint reads and validates the same input as the service's endpoint. It always answers with the same recorded
answer of the service, which therefore has the right size. Run as `python -m bench.bare SOCKET_FD FILE`; FILE holds
the answers by operation.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import httpx
import uvicorn
import uvloop
from starlette.requests import Request
from starlette.responses import Response

from cuota import config
from cuota.core.merchant import BodyProfile, Merchant
from cuota.core.order.movement import MovementKind
from cuota.web.api.movement import read_asked
from cuota.web.api.order_body import read_order_body
from cuota.web.body import parse_object, read_bytes, require_json
from cuota.web.ids import guid
from cuota.web.server.edge import Edge
from cuota.web.server.route import Area, Route
from cuota.web.server.routes import Routes
from cuota.web.service import Service

MERCHANT = Merchant(UUID(int=7), "Bench", 100, 200_000, True, BodyProfile.STRICT, "USD", ())


def make_app(answers: dict[str, str], settings: config.Settings) -> Edge:
    """Make the application."""
    bodies = {work: text.encode() for work, text in answers.items()}

    def answer(work: str) -> Response:
        return Response(bodies[work], media_type="application/json")

    async def create(request: Request) -> Response:
        require_json(request)
        read_order_body(parse_object(await read_bytes(request)), MERCHANT, https_only=False)
        return answer("create")

    async def read(request: Request) -> Response:
        guid(request.path_params["order_id"])
        return answer("read")

    def move(kind: MovementKind) -> Callable[[Request], Awaitable[Response]]:
        async def run(request: Request) -> Response:
            require_json(request)
            body = await read_bytes(request)
            guid(request.path_params["order_id"])
            dry = request.query_params.get("dryRun") == "true"
            read_asked(parse_object(body), kind, MERCHANT)
            return answer("dry run" if dry else kind)

        return run

    async def token(request: Request) -> Response:
        require_json(request)
        parse_object(await read_bytes(request))
        return answer("token")

    area = Area()
    routes = Routes(
        [
            Route("POST", "/oauth/token", token, area),
            Route("POST", "/order", create, area),
            Route("GET", "/order/{order_id}", read, area),
            Route("POST", "/order/{order_id}/capture", move(MovementKind.CAPTURE), area),
            Route("POST", "/order/{order_id}/refund", move(MovementKind.REFUND), area),
        ]
    )
    return Edge(routes, cast("Service", SimpleNamespace(settings=settings, requests=None)))


def serve(listener: socket.socket, app: Edge) -> None:
    """Serve until SIGTERM, with the settings of `cuota.run.process`."""
    settings = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=2048,
        timeout_keep_alive=30,
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(uvicorn.Server(settings).serve(sockets=[listener]))


@contextlib.contextmanager
def running(answers: dict[str, str], workers: int) -> Iterator[int]:
    """Start workers on one port, and return the port."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="cuota-bench-bare-"))
        file = Path(folder, "answers.json")
        file.write_text(json.dumps(answers))
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=2048))
        port = listener.getsockname()[1]
        # The service writes its counters to files that its workers share. Do the same here.
        environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": folder}
        command = [sys.executable, "-m", "bench.bare", str(listener.fileno()), str(file)]
        for _ in range(workers):
            started = subprocess.Popen(command, pass_fds=[listener.fileno()], env=environment)
            stack.callback(started.wait)
            stack.callback(started.terminate)
        _wait(f"http://127.0.0.1:{port}/order/{UUID(int=1)}")
        time.sleep(0.5)  # the second worker's start
        yield port


def _wait(address: str) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with contextlib.suppress(httpx.HTTPError):
            httpx.get(address, trust_env=False, timeout=5).raise_for_status()
            return
        time.sleep(0.05)
    raise RuntimeError("The bare web stack did not start.")


if __name__ == "__main__":
    file = Path(sys.argv[2])
    listening = socket.socket(fileno=int(sys.argv[1]))
    serve(
        listening, make_app(json.loads(file.read_text()), config.load({"CUOTA_DATA_DIR": str(file.parent)}))
    )
