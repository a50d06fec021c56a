"""Serves the logos of merchants, by the hash of their content. The checkout shows them."""

from __future__ import annotations

import re
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.db.merchant import logos
from cuota.db.row_security import narrow
from cuota.web.ids import guid
from cuota.web.service import service_of

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
# The content of an address never changes. Opened by itself, the file is a picture and nothing else: no script, no page.
_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Content-Disposition": "inline",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def logo_address(merchant_id: UUID, digest: str) -> str:
    """Return the path of a logo."""
    return f"/logos/{merchant_id}/{digest}"


async def logo(request: Request) -> Response:
    """`GET /logos/{merchantId}/{digest}`: return the picture."""
    merchant_id, digest = guid(request.path_params["merchant_id"]), request.path_params["digest"]
    found = None
    if _DIGEST.fullmatch(digest):
        narrow(merchant_id)
        found = await logos.read(service_of(request).context.pool, merchant_id, digest)
    if found is None:
        raise Refused(Code.NOT_FOUND, "There is no such logo.")
    return Response(found.content, media_type=found.media_type, headers=_HEADERS)
