"""Requests with the header `Expect: 100-continue` (RFC 9110, section 10.1.1).

Such a client waits for "100 Continue" before it sends the body. If it gets a final answer instead, it may send the body
or leave it out. The server cannot know which of the two will happen. On an open connection the server could read the
next request as that body, or that body as the next request. So the server closes the connection after such an answer.
"""

from __future__ import annotations

from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


def expecting(cycle: RequestResponseCycle, app: ASGI3Application) -> ASGI3Application:
    """Wrap `app` so that the connection closes if `app` answers before "100 Continue" was sent or any body arrived."""

    async def run(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def send_on(message: ASGISendEvent) -> None:
            if cycle.waiting_for_100_continue and cycle.more_body and not cycle.body:
                cycle.keep_alive = False
            await send(message)

        await app(scope, receive, send_on)

    return run
