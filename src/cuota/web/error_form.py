"""How a route words its refusals: JSON (RFC 9457), or another form that the route brings along."""

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
        """Answer a request whose handler raised this, or for which there is no handler."""

    def not_begun(self, request: Request, refused: Refused) -> Response:
        """Answer a request whose handler was never called."""

    def page_kind(self, request: Request) -> Hashable | None:
        """Which page `not_begun` shows when the service is busy; None where it shows no page.

        A page is slow to render. The edge renders each kind once and repeats it.
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
        """Answer in the same form."""
        return self.answer(request, refused)

    def page_kind(self, request: Request) -> Hashable | None:
        """JSON is no page."""
        del request
        return None


PROBLEM = ProblemForm()
