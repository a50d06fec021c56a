"""Error forms: how a route turns a refusal into an answer.

The default is JSON (RFC 9457). An area of routes may define another form, such as an HTML page.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Refused
from cuota.web.problem import response_of
from cuota.web.service import service_of


class ErrorForm(Protocol):
    """Turns refusals into answers. Each route has one; the edge calls it."""

    def answer(self, request: Request, refused: Refused) -> Response:
        """Answer a request whose handler raised this refusal, or that has no handler."""

    def not_begun(self, request: Request, refused: Refused) -> Response:
        """Answer a request whose handler was never called."""

    def page_kind(self, request: Request) -> Hashable | None:
        """Name the page that `not_begun` shows when the service is busy; None if it shows no page.

        Rendering a page is slow, so the edge renders each kind of page only once.
        """


class ProblemForm:
    """The JSON error body of the API."""

    def answer(self, request: Request, refused: Refused) -> Response:
        """Answer with the error body."""
        public_url = service_of(request).settings.public_url
        return response_of(
            refused, public_url=public_url, path=request.url.path, request_id=request.scope["request_id"]
        )

    def not_begun(self, request: Request, refused: Refused) -> Response:
        """Answer with the error body, as `refused` does."""
        return self.answer(request, refused)

    def page_kind(self, request: Request) -> Hashable | None:
        """Return None, because the error body is not a page."""
        del request
        return None


PROBLEM = ProblemForm()
