"""The edge: the code through which every request passes first and last.

The edge gives each request an id and a route, asks admission control for a place, calls the handler, turns every
exception into an answer, adds security headers, and writes one log line and the metrics.
"""

from __future__ import annotations

import logging
import re
import time
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from cuota.core.refusal import Code, Refused
from cuota.db import row_security
from cuota.db.pool import BUSY as TOO_BUSY
from cuota.db.pool import LOST
from cuota.flows.merchant.authenticate import unauthorized
from cuota.web.error_form import PROBLEM
from cuota.web.problem import STATUS
from cuota.web.server.admission import Admission
from cuota.web.server.busy import BUSY_STATUS, BusyAnswers
from cuota.web.server.head import Headers
from cuota.web.server.metrics import count_request
from cuota.web.server.request_id import new_request_id
from cuota.web.server.route import Route
from cuota.web.server.routes import Routes
from cuota.web.server.token_client import read_client
from cuota.web.service import Service

log = logging.getLogger("cuota.request")
# `refuse_at_once` answers only these methods: their answers have a body, and they are never preflight requests.
_PLAIN = {b"GET": "GET", b"POST": "POST"}
# The target of most requests: a path without escapes, empty segments and a slash at its end, and perhaps a query.
_TARGET = re.compile(rb"((?:/[^/%?#\x80-\xff]+)+)(?:\?.*)?", re.DOTALL)
_SAFE_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
_HSTS = (b"strict-transport-security", b"max-age=31536000")
_CLOSE = (b"connection", b"close")
_TOO_LARGE = STATUS[Code.BODY_TOO_LARGE][0]


class Edge:
    """The ASGI application that calls the handlers of the routes, without other layers between them.

    Handlers find `service` through the request (`service_of`). While the process is `draining`, every answer closes its
    connection, and the readiness check fails.
    """

    def __init__(self, routes: Routes, service: Service) -> None:
        self.routes = routes
        self.service = service
        self.draining = False
        self.admission = Admission()
        self._headers = _SAFE_HEADERS + ([_HSTS] if service.settings.secure else [])
        self._busy = BusyAnswers(service.settings.public_url, self._headers)
        # The edges that serve other ports of this process. They drain together with this one.
        self.beside: list[Edge] = []

    def drain(self) -> None:
        """Prepare to stop: from now on every answer closes its connection."""
        self.draining = True
        for other in self.beside:
            other.drain()

    def forget(self) -> None:
        """Forget all authenticated callers, because the sandbox was restored to an earlier state."""
        self.service.callers.forget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = time.perf_counter()
        headers = self._begin(scope)
        route: Route = scope["route"]
        if route.by_client:
            scope["token_client"], receive = await read_client(scope, receive)
        place = self.admission.enter(scope)
        if place is None:
            # No log line and no timing, so that a flood costs little. `cuota_refused_total` counts it.
            await self._turn_away(scope, send, headers)
            return
        row_security.widen()
        status = 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status == _TOO_LARGE:
                    # The rest of the body may still arrive, and no handler reads it.
                    headers.append(_CLOSE)
                message["headers"] = _joined(message["headers"], headers)
            else:
                _keep_answer(scope, message)
            await send(message)

        try:
            _refuse_doubled(scope, headers)
            receive = self.admission.patient(place, receive)
            response = await route.endpoint(Request(scope, receive, send_on))
            await response(scope, receive, send_on)
        except ClientDisconnect:
            # No answer can be sent, and this is not an error of the service.
            status = 499
        except Exception as problem:
            if status:
                # The answer has begun and cannot be replaced: the server closes the connection.
                raise
            await _refusal(Request(scope), problem)(scope, receive, send_on)
        finally:
            self.admission.leave(place, scope, status)
            self._ended(scope, status, time.perf_counter() - started)

    def _begin(self, scope: Scope) -> Headers:
        """Give the request its id and its route. Return the headers that its answer must have."""
        request_id = new_request_id()
        scope["app"], scope["request_id"] = self, request_id
        path = scope["path"]
        # One trailing slash is accepted. A redirect would turn a POST into a GET.
        if len(path) > 1 and path.endswith("/") and not path.endswith("//"):
            scope["path"] = path[:-1]
        route, scope["path_params"] = self.routes.find(scope["method"], scope["path"])
        scope["route"] = route
        headers = [*self._headers, (b"x-request-id", request_id.encode()), *route.area.headers]
        if self.draining:
            headers.append(_CLOSE)
        return headers

    def _ended(self, scope: Scope, status: int, seconds: float) -> None:
        """Log the end of a request, and also record it in the request log of its merchant."""
        _note(scope, status, seconds)
        if self.service.requests is not None and (record := scope.get("record")) is not None:
            self.service.requests.end(record, scope, status, seconds)

    async def _turn_away(self, scope: Scope, send: Send, headers: Headers) -> None:
        """Answer 503, in the error form of the route. The most frequent form, JSON, has a faster path here."""
        if not _one_host(scope, _names(scope)):
            headers = [*headers, _CLOSE]
        own, body = self._busy.answer(scope)
        await send({"type": "http.response.start", "status": BUSY_STATUS, "headers": _joined(own, headers)})
        await send({"type": "http.response.body", "body": body})

    def refuse_at_once(self, method: bytes, url: bytes, headers: Headers, fields: Headers) -> bytes | None:
        """Return the whole answer to a plain request that admission refuses now; None for every other request.

        The protocol calls this when the head of a request is complete. Such a refusal needs no scope and no task, so a
        flood leaves more time for the requests that are admitted. `fields` are the header fields of every answer.
        """
        if not self.admission.crowded or self.draining:
            return None
        name, target = _PLAIN.get(method), _TARGET.fullmatch(url)
        if name is None or target is None:
            return None
        path = target[1].decode("ascii")
        route, params = self.routes.find(name, path)
        if route.by_client or route.area.errors is not PROBLEM:
            return None
        hosts, authorization = 0, None
        for field, value in headers:
            if field == b"host":
                hosts += 1
            elif field == b"authorization" and authorization is None:
                authorization = value
        if hosts != 1 or not self.admission.refuses(route, name, params, authorization):
            return None
        return self._busy.on_the_wire(path, route.area, fields)

    async def refuse(self, scope: Scope, receive: Receive, send: Send, refused: Refused) -> None:
        """Refuse a request without calling its handler, in the error form of its route."""
        headers = self._begin(scope)
        answer = _not_begun(Request(scope), refused)
        answer.raw_headers = _joined(
            answer.raw_headers, headers if _one_host(scope, _names(scope)) else [*headers, _CLOSE]
        )
        await answer(scope, receive, send)


def _keep_answer(scope: Scope, message: Message) -> None:
    """Keep a part of the answer for the request log."""
    if (record := scope.get("record")) is not None:
        record.answered(message.get("body", b""))


def _joined(own: Headers, headers: Headers) -> Headers:
    """Return `own`, the headers of the answer, plus those of `headers` whose names the answer does not set."""
    given = [name for name, _ in own]
    return own + [header for header in headers if header[0] not in given]


def _names(scope: Scope) -> list[bytes]:
    return [name for name, _ in scope["headers"]]


def _one_host(scope: Scope, names: list[bytes]) -> bool:
    """Return whether the request names exactly one host, as RFC 9112, section 3.2, requires.

    With two Host headers, a proxy and this service could each choose a different one.
    """
    hosts = names.count(b"host")
    return bool(hosts == 1 or (hosts == 0 and scope["http_version"] == "1.0"))


def _refuse_doubled(scope: Scope, headers: Headers) -> None:
    """Refuse a request with several Host or several Authorization headers, because it is unclear which one counts."""
    names = _names(scope)
    if not _one_host(scope, names):
        headers.append(_CLOSE)
        raise Refused(Code.MALFORMED_REQUEST, "An HTTP/1.1 request must have exactly one Host header.")
    if names.count(b"authorization") > 1 and not scope["route"].judges_authorization:
        raise unauthorized()


def _note(scope: Scope, status: int, seconds: float) -> None:
    """Count the request and write one log line.

    The line holds ids and the route's template. It never holds the actual path, the query, the body or personal data.
    """
    route: Route = scope["route"]
    count_request(route.path, scope["method"] if route.is_known else "other", status, seconds)
    if log.isEnabledFor(logging.INFO):
        facts: dict[str, Any] = {
            "requestId": scope["request_id"],
            "method": scope["method"],
            "route": route.path,
            "status": status,
        }
        facts["ms"] = round(seconds * 1000, 2)
        if "merchant_id" in scope:
            facts["merchantId"] = str(scope["merchant_id"])
        log.info("request", extra={"facts": facts})


def _not_begun(request: Request, refused: Refused) -> Response:
    route: Route = request.scope["route"]
    return route.area.errors.not_begun(request, refused)


def _answer(request: Request, refused: Refused) -> Response:
    route: Route = request.scope["route"]
    return route.area.errors.answer(request, refused)


def _refusal(request: Request, problem: Exception) -> Response:
    """Return the answer to a request whose handler raised this exception."""
    if isinstance(problem, Refused):
        return _answer(request, problem)
    if isinstance(problem, HTTPException):
        return _no_route(request, problem)
    facts = {"requestId": request.scope["request_id"]}
    if isinstance(problem, (*LOST, *TOO_BUSY)):
        # Calls that move money do not get here. They find out themselves what was applied, and report it.
        log.warning("database", extra={"facts": {**facts, "problem": type(problem).__name__}})
        message = "The database could not answer. Repeat the request shortly; the same reference is never applied twice."
        return _answer(request, Refused(Code.UNAVAILABLE, message, retry_after=1))
    log.error("accident", exc_info=problem, extra={"facts": facts})
    message = "Something went wrong on our side. Try again; if the error persists, send us the requestId."
    return _answer(request, Refused(Code.INTERNAL_ERROR, message))


def _no_route(request: Request, problem: HTTPException) -> Response:
    """Return the answer to a path or a method that does not exist."""
    if problem.status_code != 405:
        message = "There is nothing at this path. The API is described at /docs."
        return _answer(request, Refused(Code.NOT_FOUND, message))
    allowed = (problem.headers or {}).get("Allow", "")
    answer = _answer(request, Refused(Code.METHOD_NOT_ALLOWED, f"Use one of: {allowed}."))
    answer.headers["Allow"] = allowed
    return answer
