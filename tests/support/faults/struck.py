"""A service whose worker can be killed at an exact step, a receiver that records webhooks, and a movable clock."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from cuota.db.embedded.server import open_embedded
from support.faults.served import ORDER, Service, token, until

STRIKE = Path(__file__).parents[2] / "faults" / "strike"


class StruckService(Service):
    """A `cuota serve` with failpoints. They do nothing until a test arms one."""

    @property
    def file(self) -> Path:
        return self.data.parent / "strike"

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, (str(STRIKE), os.environ.get("PYTHONPATH"))))
        return {**super().environment, "PYTHONPATH": path, "STRIKE_FILE": str(self.file)}

    def arm(self, when: str, kind: str, what: str, action: str = "kill", seconds: float = 0.0) -> None:
        """Arm a failpoint: the next process that reaches this step performs the action once. See
        `strike/strike_points.py`."""
        moment = {"when": when, "kind": kind, "what": what, "action": action, "seconds": seconds}
        aside = self.file.with_suffix(".new")
        aside.write_text(json.dumps(moment))
        aside.rename(self.file)

    def wait_for_strike(self) -> None:
        until(lambda: not self.file.exists(), 60)


class BuggedService(StruckService):
    """A `cuota serve` with failpoints and planted bugs. Each bug is inactive until a test names it: see
    `strike/strike_bugs.py`."""

    @property
    def bug(self) -> Path:
        return self.data.parent / "bug"

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "BUG_FILE": str(self.bug)}

    @contextmanager
    def planted(self, name: str) -> Iterator[None]:
        """Activate one bug."""
        aside = self.bug.with_suffix(".new")
        aside.write_text(name)
        aside.rename(self.bug)
        try:
            yield
        finally:
            self.bug.unlink()


@dataclass
class Receiver:
    """A merchant's webhook receiver. It records the id of each event, and the order and sequence of each body, in the order of arrival."""

    url: str
    bodies: list[dict[str, Any]] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def sequences(self, order_id: str) -> list[int]:
        return [body["sequence"] for body in self.bodies if body["orderId"] == order_id]


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Start a receiver on loopback, in a thread. It acknowledges everything."""
    got = Receiver("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            if len(body := self.rfile.read(length)) < length:
                # The process that sent the request was killed on the way.
                self.close_connection = True
                return
            said = json.loads(body)
            # Parse only a part of the body: it contains the order, which may have thousands of captures.
            # An event about a payout has no order.
            got.bodies.append({name: said.get(name) for name in ("orderId", "sequence", "type")})
            got.ids.add(self.headers["webhook-id"])
            self.send_response(204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, *_: object) -> None:
            """Ignore the error. It is expected, because the process that sent the request was killed."""

    server = Server(("127.0.0.1", 0), Handler)
    got.url = f"http://127.0.0.1:{server.server_port}/hooks"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class World:
    """The service, one merchant with its token, and its receiver."""

    service: StruckService
    receiver: Receiver
    headers: dict[str, str]

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request as the merchant, and repeat it until the answer is definite."""
        found: list[httpx.Response] = []

        def answered() -> bool:
            try:
                answer = httpx.request(
                    method,
                    f"{self.service.url}{path}",
                    headers=self.headers,
                    trust_env=False,
                    timeout=60,
                    **more,
                )
            except httpx.TransportError:
                return False
            found.append(answer)
            return answer.status_code != 503

        until(answered, 60)
        return found[-1]

    def approved(self) -> str:
        """Return an order that its consumer completed. If the service died meanwhile, the consumer starts again."""
        order: dict[str, Any] = {}

        def walked() -> bool:
            body = {**ORDER, "merchant": {**ORDER["merchant"], "statusCallbackUrl": self.receiver.url}}
            order.update(self.call("POST", "/order", json=body).json())
            done = self.service.run("sandbox", "complete", order["redirectUrl"], "--outcome", "approved")
            return done.returncode == 0

        until(walked, 60)
        return str(order["orderId"])

    def ask(self, sql: str, *values: object) -> Any:
        """Read one value as the database's owner."""

        async def go() -> Any:
            with open_embedded(self.service.data) as embedded:
                connection = await asyncpg.connect(**embedded.dsn_kwargs)
                try:
                    return await connection.fetchval(sql, *values)
                finally:
                    await connection.close()

        return asyncio.run(go())

    def later(self, interval: str) -> None:
        """Move the service's clock. Only the service's own worker does the work that becomes due."""
        self.ask(
            "INSERT INTO sandbox_clock (ahead) VALUES ($1::text::interval)"
            " ON CONFLICT (single) DO UPDATE SET ahead = sandbox_clock.ahead + excluded.ahead",
            interval,
        )

    def just_before(self, instant: str, *values: object) -> None:
        """Move the service's clock to a minute before the time that this statement returns."""
        self.ask(
            f"INSERT INTO sandbox_clock (ahead) VALUES (({instant}) - now() - interval '1 minute')"
            " ON CONFLICT (single) DO UPDATE SET ahead = excluded.ahead",
            *values,
        )


def world_of(served: StruckService, hooks: Receiver) -> World:
    """Make a new merchant with an endpoint."""
    return World(served, hooks, token(served.url, served.merchant()))
