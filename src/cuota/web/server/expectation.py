"""`Expect: 100-continue`: whoever is answered instead of being told to go on may send the body, or not (RFC 9110, 10.1.1).

Where the connection went on, the next request could be taken for that body, and a body for the next request.
"""

from __future__ import annotations

from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


def expecting(cycle: RequestResponseCycle, app: ASGI3Application) -> ASGI3Application:
    """The application, whose answer ends the connection if nothing of the body has come, and none was asked for."""

    async def run(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def send_on(message: ASGISendEvent) -> None:
            if cycle.waiting_for_100_continue and cycle.more_body and not cycle.body:
                cycle.keep_alive = False
            await send(message)

        await app(scope, receive, send_on)

    return run
