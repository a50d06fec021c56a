"""`GET /sdk/v1/window`: the page that a popup shows while the merchant's page requests the checkout."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.web.pages.render import FramePolicy, PageContext, page
from cuota.web.service import service_of


async def window(request: Request) -> Response:
    """Return the page, which is the same for everybody. `#slow` and `#failed` in its address select other texts."""
    context: PageContext = {
        "page": {"title": "Opening your payment…", "lead": None, "step": None, "steps": 4},
        "sandbox": service_of(request).settings.sandbox,
    }
    response = page(request, "window.html", context, place=FramePolicy(opened=True))
    # The popup opens upon a click and must show at once, so the browser may cache the page.
    response.headers["Cache-Control"] = "private, max-age=300"
    return response
