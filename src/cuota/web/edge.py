"""The outermost layer: request id, one log line, metrics, security headers, and every refusal turned into an answer."""

from __future__ import annotations

import json
import logging
import time
import uuid
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from cuota.core.refusal import Code, Refused
from cuota.web.metrics import LATENCY, REQUESTS
from cuota.web.pages.render import in_account, trouble
from cuota.web.problem import headers_of, response_of, status_of
from cuota.web.service import service_of

log = logging.getLogger("cuota.request")
_SAFE_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
_FOR_PAGES = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"retry-after, x-request-id"),
]


class Edge:
    """Wraps the application; pure ASGI, so that a request is copied nowhere on its way."""

    def __init__(self, app: Starlette) -> None:
        self._app = app

    def drain(self) -> None:
        """From now on every answer closes its connection, and readiness says no."""
        self._app.state.draining = True

    def forget(self) -> None:
        """Remember no caller: the sandbox went back to an earlier state."""
        self._app.state.service.callers.forget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = str(uuid.uuid4())
        scope["request_id"] = request_id
        path = scope["path"]
        # One trailing slash is tolerated, without a redirect that a POST would not survive.
        if len(path) > 1 and path.endswith("/") and not path.endswith("//"):
            scope["path"] = path[:-1]
        headers = [*_SAFE_HEADERS, (b"x-request-id", request_id.encode())]
        if path.startswith("/sdk/v1/checkouts"):
            # No cookie opens anything here, only what was signed: a page may read every answer, a refusal too.
            headers += _FOR_PAGES
        if self._app.state.settings.secure:
            headers.append((b"strict-transport-security", b"max-age=31536000"))
        if self._app.state.draining:
            headers.append((b"connection", b"close"))
        status = 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in headers if h[0] not in given)]
            await send(message)

        try:
            if _one_host(scope):
                await self._app(scope, receive, send_on)
            else:
                headers.append((b"connection", b"close"))
                await self._refuse_host(scope, receive, send_on)
        except ClientDisconnect:
            status = 499
        finally:
            _note(scope, status, started, request_id)

    async def _refuse_host(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self._app
        refused = Refused(Code.MALFORMED_REQUEST, "An HTTP/1.1 request must have exactly one Host header.")
        await _answer(Request(scope), refused)(scope, receive, send)


def _one_host(scope: Scope) -> bool:
    """Two servers must not read a request as meant for two hosts (RFC 9112, section 3.2)."""
    hosts = [name for name, _ in scope["headers"]].count(b"host")
    return bool(hosts == 1 or (hosts == 0 and scope["http_version"] == "1.0"))


def _note(scope: Scope, status: int, started: float, request_id: str) -> None:
    """One line a request: ids and the route's template, never a path, query, body or person."""
    seconds = time.perf_counter() - started
    route = scope.get("route_name", "unknown")
    REQUESTS.labels(route, scope["method"] if route != "unknown" else "other", str(status)).inc()
    LATENCY.labels(route).observe(seconds)
    if log.isEnabledFor(logging.INFO):
        facts: dict[str, Any] = {
            "requestId": request_id,
            "method": scope["method"],
            "route": route,
            "status": status,
        }
        facts["ms"] = round(seconds * 1000, 2)
        if "merchant_id" in scope:
            facts["merchantId"] = str(scope["merchant_id"])
        log.info("request", extra={"facts": facts})


def _answer(request: Request, refused: Refused) -> Response:
    if request.url.path.startswith("/checkout/") or in_account(request.url.path):
        return trouble(request, status_of(refused), headers_of(refused))
    public_url = service_of(request).settings.public_url
    return response_of(
        refused, public_url=public_url, path=request.url.path, request_id=request.scope["request_id"]
    )


async def on_refused(request: Request, error: Exception) -> Response:
    """A refusal, by the one table."""
    assert isinstance(error, Refused)
    return _answer(request, error)


async def on_http_error(request: Request, error: Exception) -> Response:
    """What the router says: no such path, no such method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        answer = _answer(request, Refused(Code.METHOD_NOT_ALLOWED, f"Use one of: {allowed}."))
        answer.headers["Allow"] = allowed
        return answer
    return _answer(
        request, Refused(Code.NOT_FOUND, "There is nothing at this path. The API is described at /docs.")
    )


async def on_database(request: Request, error: Exception) -> Response:
    """The database went away or was too busy, outside a money call (those find out and say more)."""
    log.warning(
        "database",
        extra={"facts": {"requestId": request.scope["request_id"], "problem": type(error).__name__}},
    )
    message = "The database did not answer in time. Repeat the request shortly; the same reference is never applied twice."
    return _answer(request, Refused(Code.UNAVAILABLE, message, retry_after=1))


async def on_accident(request: Request, error: Exception) -> Response:
    """A bug of ours: logged with its trace, told without it."""
    log.error("accident", exc_info=error, extra={"facts": {"requestId": request.scope.get("request_id")}})
    message = "Something went wrong on our side. Try again; if it stays, tell us the requestId."
    return _answer(request, Refused(Code.INTERNAL_ERROR, message))


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger, message, and the facts that came with it."""
        line: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            # PostgreSQL's DETAIL quotes whole rows, and rows may hold a person's data.
            trace = self.formatException(record.exc_info).splitlines()
            line["trace"] = "\n".join(text for text in trace if not text.startswith("DETAIL:"))
        return json.dumps(line)
