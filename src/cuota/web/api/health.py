"""`GET /health/live` and `GET /health/ready`: the health checks for load balancers and process managers."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.db.order.documents import encode
from cuota.db.pool import GONE
from cuota.web.service import service_of

_OK = encode({"status": "ok"})
NO_STORE = {"Cache-Control": "no-store"}


async def live(request: Request) -> Response:
    """Answer 200, to show that the process runs."""
    del request
    return Response(_OK, headers=NO_STORE, media_type="application/json")


async def ready(request: Request) -> Response:
    """Answer 200 if the process can take requests: it is not stopping, and its database answers. Otherwise answer 503.

    On a cluster the answer names the nodes that cannot be reached, by number only, because anybody may read it. The process can
    take requests as long as one node with merchants' rows can be reached.
    """
    if request.app.draining:
        raise Refused(Code.UNAVAILABLE, "The service is stopping.", retry_after=5)
    probe = service_of(request).probe
    try:
        await probe.answers()
    except GONE:
        raise Refused(Code.UNAVAILABLE, "The database does not answer.", retry_after=2) from None
    down = await probe.nodes.down()
    if probe.nodes.nobody_served:
        raise Refused(Code.UNAVAILABLE, "No node of the database answers.", retry_after=2)
    body = encode({"status": "ok", "unreachableNodes": down}) if down else _OK
    return Response(body, headers=NO_STORE, media_type="application/json")
