"""`GET /configuration`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.web.api import answers
from cuota.web.service import merchant_of


async def configuration(request: Request) -> Response:
    """Return the merchant's terms: the lowest and highest order amount, and whether captures are deferred."""
    return Response(answers.configuration(await merchant_of(request)), media_type="application/json")
