"""`GET /sdk/v1/window`: what a popup shows while the merchant's page asks for its checkout."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.web.pages.render import FramePolicy, PageContext, page
from cuota.web.service import service_of


async def window(request: Request) -> Response:
    """The same for everybody; `#slow` and `#failed` show how the opening goes."""
    context: PageContext = {
        "page": {"title": "Opening your payment…", "lead": None, "step": None, "steps": 4},
        "sandbox": service_of(request).settings.sandbox,
    }
    response = page(request, "window.html", context, place=FramePolicy(opened=True))
    # Asked for inside the click: a copy in the browser shows at once.
    response.headers["Cache-Control"] = "private, max-age=300"
    return response
