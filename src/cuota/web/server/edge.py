"""The outermost layer: request id, one log line, metrics, security headers, and every refusal turned into an answer."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cuota.core.refusal import Code, Refused
from cuota.core.wire.card_text import masked
from cuota.db import row_security
from cuota.db.pool import BUSY as TOO_BUSY
from cuota.db.pool import LOST
from cuota.flows.merchant.authenticate import unauthorized
from cuota.web.api import gateway, token
from cuota.web.pages.refusal import refusal
from cuota.web.pages.render import in_account, trouble
from cuota.web.problem import MEDIA_TYPE, STATUS, body_of, headers_of, response_of, status_of
from cuota.web.server.admission import Admission
from cuota.web.server.metrics import count_request
from cuota.web.server.request_id import new_request_id
from cuota.web.server.token_client import is_token_request, read_client
from cuota.web.service import Service, service_of

log = logging.getLogger("cuota.request")
BUSY = Refused(
    Code.UNAVAILABLE,
    "The service is busy and did not start on this request; nothing was applied. Try again shortly.",
    retry_after=1,
)
_BUSY_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()),
    *((name.lower().encode(), value.encode()) for name, value in headers_of(BUSY).items()),
]
# Shoppers come here too, led by their browser.
_GATEWAY = "/orders/authorize"
# As long as every other, in a page that is rendered once.
_ANY_ID = "00000000-0000-4000-8000-000000000000"
Headers = list[tuple[bytes, bytes]]
_SAFE_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
_CLOSE = (b"connection", b"close")
_TOO_LARGE = STATUS[Code.BODY_TOO_LARGE][0]
_FOR_PAGES = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"retry-after, x-request-id"),
]


class Edge:
    """Wraps the routes; pure ASGI, so that a request is copied nowhere on its way.

    `service` is what every handler is given; while `draining` every answer closes its connection, and readiness says no.
    """

    def __init__(self, routes: ASGIApp, service: Service) -> None:
        self._routes = routes
        self.service = service
        self.draining = False
        self.admission = Admission()
        self._public_url = service.settings.public_url
        self._secure = service.settings.secure
        # A page is dear to render, and these are always the same.
        self._busy_pages: dict[object, Response] = {}
        # Other ports of the same process, which stop with it.
        self.beside: list[Edge] = []

    def drain(self) -> None:
        """The process stops."""
        self.draining = True
        for other in self.beside:
            other.drain()

    def forget(self) -> None:
        """Remember no caller: the sandbox went back to an earlier state."""
        self.service.callers.forget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = time.perf_counter()
        headers = self._begin(scope)
        if self.admission.crowded and is_token_request(scope):
            scope["token_client"], receive = await read_client(scope, receive)
        place = self.admission.enter(scope)
        if place is None:
            # Neither logged nor timed: a flood is to cost little. `cuota_refused_total` counts it.
            await self._turn_away(scope, send, headers)
            return
        row_security.widen()
        status = 0

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if status == _TOO_LARGE:
                    # The rest of the body may still be on its way: nobody reads it.
                    headers.append(_CLOSE)
                message["headers"] = _joined(message["headers"], headers)
            await send(message)

        try:
            _refuse_doubled(scope, headers)
            await self._routes(scope, self.admission.patient(place, receive), send_on)
        except ClientDisconnect:
            # Whoever asked hung up in the middle, or broke off a body: nobody is told, and it is no accident of ours.
            status = 499
        except Exception as problem:
            if status:
                # An answer has begun: it ends here, and its connection with it.
                raise
            await _refusal(Request(scope), problem)(scope, receive, send_on)
        finally:
            self.admission.leave(place, scope, status)
            _note(scope, status, started)

    def _begin(self, scope: Scope) -> Headers:
        """Give a request its name; answers what its answer carries."""
        request_id = new_request_id()
        scope["app"], scope["request_id"] = self, request_id
        path = scope["path"]
        # One trailing slash is tolerated, without a redirect that a POST would not survive.
        if len(path) > 1 and path.endswith("/") and not path.endswith("//"):
            scope["path"] = path[:-1]
        return self._headers(path, request_id)

    def _headers(self, path: str, request_id: str) -> Headers:
        """What every answer carries."""
        headers = [*_SAFE_HEADERS, (b"x-request-id", request_id.encode())]
        if path.startswith("/sdk/v1/checkouts"):
            # No cookie opens anything here, only what was signed: a page may read every answer, a refusal too.
            headers += _FOR_PAGES
        if self._secure:
            headers.append((b"strict-transport-security", b"max-age=31536000"))
        if self.draining:
            headers.append(_CLOSE)
        return headers

    async def _turn_away(self, scope: Scope, send: Send, headers: Headers) -> None:
        """Refuse what found no place, in the form that its path has; what is most asked, by as little as can be."""
        path = scope["path"]
        if not _one_host(scope, _names(scope)):
            headers = [*headers, _CLOSE]
        if path in {"/oauth/token", _GATEWAY} or _is_page(path):
            response = self._busy(scope, path)
            body = bytes(response.body).replace(_ANY_ID.encode(), scope["request_id"].encode())
            own = response.raw_headers
        else:
            body = body_of(BUSY, public_url=self._public_url, path=path, request_id=scope["request_id"])
            own = [*_BUSY_HEADERS, (b"content-length", b"%d" % len(body))]
        await send(
            {"type": "http.response.start", "status": status_of(BUSY), "headers": _joined(own, headers)}
        )
        await send({"type": "http.response.body", "body": body})

    def _busy(self, scope: Scope, path: str) -> Response:
        request = Request(scope)
        if path == "/oauth/token" or (path == _GATEWAY and not gateway.in_browser(request)):
            return _not_begun(request, BUSY)
        kind = path if path == _GATEWAY else (in_account(path), "k" in request.query_params)
        if kind not in self._busy_pages:
            self._busy_pages[kind] = _not_begun(Request({**scope, "request_id": _ANY_ID}), BUSY)
        return self._busy_pages[kind]

    async def refuse(self, scope: Scope, receive: Receive, send: Send, refused: Refused) -> None:
        """Answer a request that is not even begun, in the form that its path has."""
        headers = self._begin(scope)
        answer = _not_begun(Request(scope), refused)
        answer.raw_headers = _joined(
            answer.raw_headers, headers if _one_host(scope, _names(scope)) else [*headers, _CLOSE]
        )
        await answer(scope, receive, send)


def _joined(own: Headers, headers: Headers) -> Headers:
    """An answer's own headers, and those of every answer that it does not give itself."""
    given = [name for name, _ in own]
    return own + [header for header in headers if header[0] not in given]


def _names(scope: Scope) -> list[bytes]:
    return [name for name, _ in scope["headers"]]


def _one_host(scope: Scope, names: list[bytes]) -> bool:
    """Two servers must not read a request as meant for two hosts (RFC 9112, section 3.2)."""
    hosts = names.count(b"host")
    return bool(hosts == 1 or (hosts == 0 and scope["http_version"] == "1.0"))


def _refuse_doubled(scope: Scope, headers: Headers) -> None:
    """Of two hosts or two tokens nobody knows which was meant. The token issuer refuses two tokens in its own words."""
    names = _names(scope)
    if not _one_host(scope, names):
        headers.append(_CLOSE)
        raise Refused(Code.MALFORMED_REQUEST, "An HTTP/1.1 request must have exactly one Host header.")
    if names.count(b"authorization") > 1 and scope["path"] != "/oauth/token":
        raise unauthorized()


def _note(scope: Scope, status: int, started: float) -> None:
    """One line a request: ids and the route's template, never a path, query, body or person."""
    seconds = time.perf_counter() - started
    route = scope.get("route_name", "unknown")
    count_request(route, scope["method"] if route != "unknown" else "other", status, seconds)
    if log.isEnabledFor(logging.INFO):
        facts: dict[str, Any] = {
            "requestId": scope["request_id"],
            "method": scope["method"],
            "route": route,
            "status": status,
        }
        facts["ms"] = round(seconds * 1000, 2)
        if "merchant_id" in scope:
            facts["merchantId"] = str(scope["merchant_id"])
        log.info("request", extra={"facts": facts})


def _is_page(path: str) -> bool:
    return path.startswith("/checkout/") or in_account(path)


def _not_begun(request: Request, refused: Refused) -> Response:
    """The refusal of what no route has seen, in the form of the route that it was for."""
    path = request.url.path
    if path == "/oauth/token":
        return token.unavailable(request, refused)
    if path == _GATEWAY and gateway.in_browser(request):
        return refusal(request, refused, None)
    return _answer(request, refused)


def _answer(request: Request, refused: Refused) -> Response:
    if _is_page(request.url.path):
        return trouble(request, status_of(refused), headers_of(refused))
    public_url = service_of(request).settings.public_url
    return response_of(
        refused, public_url=public_url, path=request.url.path, request_id=request.scope["request_id"]
    )


def _refusal(request: Request, problem: Exception) -> Response:
    """What ended a request, as its answer."""
    if isinstance(problem, Refused):
        return _answer(request, problem)
    if isinstance(problem, HTTPException):
        return _no_route(request, problem)
    facts = {"requestId": request.scope["request_id"]}
    if isinstance(problem, (*LOST, *TOO_BUSY)):
        # Outside a money call: those find out, and say more.
        log.warning("database", extra={"facts": {**facts, "problem": type(problem).__name__}})
        message = "The database could not answer now. Repeat the request shortly; the same reference is never applied twice."
        return _answer(request, Refused(Code.UNAVAILABLE, message, retry_after=1))
    log.error("accident", exc_info=problem, extra={"facts": facts})
    message = "Something went wrong on our side. Try again; if it stays, tell us the requestId."
    return _answer(request, Refused(Code.INTERNAL_ERROR, message))


def _no_route(request: Request, problem: HTTPException) -> Response:
    """What the router says: no such path, no such method."""
    if problem.status_code != 405:
        message = "There is nothing at this path. The API is described at /docs."
        return _answer(request, Refused(Code.NOT_FOUND, message))
    allowed = (problem.headers or {}).get("Allow", "")
    answer = _answer(request, Refused(Code.METHOD_NOT_ALLOWED, f"Use one of: {allowed}."))
    answer.headers["Allow"] = allowed
    return answer


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
            line["trace"] = "\n".join(masked(text) for text in trace if not text.startswith("DETAIL:"))
        return json.dumps(line)
