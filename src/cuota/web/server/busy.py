"""The answer to a request that admission refuses: 503 with `Retry-After`, in the form of its route.

Under a flood nearly all answers are refusals, so a refusal must cost little: its JSON is built from few parts, and its
page is rendered once.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from cuota.core.refusal import Code, Refused
from cuota.core.wire.card_text import masked, may_hold_card
from cuota.db.order.documents import encode
from cuota.web.error_form import PROBLEM
from cuota.web.problem import MEDIA_TYPE, body_of, headers_of, status_of
from cuota.web.server.admission import RETRY_AFTER
from cuota.web.server.head import Headers
from cuota.web.server.request_id import new_request_id
from cuota.web.server.route import Area, Route

BUSY = Refused(
    Code.UNAVAILABLE,
    "The service is busy and did not start on this request; nothing was applied. Try again shortly.",
    retry_after=RETRY_AFTER,
)
BUSY_STATUS = status_of(BUSY)
_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()),
    *((name.lower().encode(), value.encode()) for name, value in headers_of(BUSY).items()),
]
_STATUS_LINE = b"HTTP/1.1 %d Service Unavailable\r\n" % BUSY_STATUS
# The head, the request id, the length of the body, and the body.
_WHOLE = b"%bx-request-id: %b\r\ncontent-length: %d\r\n\r\n%b"
# Placeholders for the path and the request id in the answers that are built once. `_ANY_ID` has the length of every request id.
_ANY_PATH, _ANY_ID = "/any-path", "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"


class BusyAnswers:
    """Makes the answers to refused requests."""

    def __init__(self, public_url: str, headers: Headers) -> None:
        """`headers` are the header fields, other than the request id, that the edge adds to every answer."""
        self._headers = headers
        # The start of the answers that are sent this second, by area.
        self._fields: Headers = []
        self._heads: dict[Area, bytes] = {}
        # The JSON around the path and the request id.
        whole = body_of(BUSY, public_url=public_url, path=_ANY_PATH, request_id=_ANY_ID)
        self._begin, _, rest = whole.partition(encode(_ANY_PATH))
        self._middle, _, self._end = rest.partition(encode(_ANY_ID))
        # Pages that say "busy", by error form and kind. A page is slow to render, and these never change.
        self._pages: dict[object, Response] = {}

    def answer(self, scope: Scope) -> tuple[Headers, bytes]:
        """Return the headers and the body. The scope must already have `route` and `request_id`."""
        if scope["route"].area.errors is PROBLEM:
            body = self._json(scope["path"], scope["request_id"])
            return [*_HEADERS, (b"content-length", b"%d" % len(body))], body
        page = self._page(scope)
        return page.raw_headers, bytes(page.body).replace(_ANY_ID.encode(), scope["request_id"].encode())

    def on_the_wire(self, path: str, area: Area, fields: Headers) -> bytes:
        """Return the whole answer as it is sent, with a new request id, for a route whose errors are JSON.

        `fields` are the header fields that the server adds to every answer. The server makes a new list each second.
        """
        if fields is not self._fields:
            self._fields, self._heads = fields, {}
        head = self._heads.get(area)
        if head is None:
            lines = [b"%b: %b\r\n" % field for field in (*fields, *self._headers, *area.headers, *_HEADERS)]
            head = self._heads[area] = _STATUS_LINE + b"".join(lines)
        request_id = new_request_id()
        body = self._json(path, request_id)
        return _WHOLE % (head, request_id.encode(), len(body), body)

    def _json(self, path: str, request_id: str) -> bytes:
        """Return what `body_of` returns for BUSY."""
        shown = encode(path)
        if may_hold_card(shown):
            shown = encode(masked(path))
        return b'%b%b%b"%b"%b' % (self._begin, shown, self._middle, request_id.encode(), self._end)

    def _page(self, scope: Scope) -> Response:
        route: Route = scope["route"]
        request, errors = Request(scope), route.area.errors
        kind = errors.page_kind(request)
        if kind is None:
            return errors.not_begun(request, BUSY)
        if (errors, kind) not in self._pages:
            self._pages[errors, kind] = errors.not_begun(Request({**scope, "request_id": _ANY_ID}), BUSY)
        return self._pages[errors, kind]
