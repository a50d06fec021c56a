"""The protocol of a connection under overload: most requests that admission refuses are answered once their head is read.

uvicorn starts a task for each request. A flood that is refused needs no task, so the process has more time for the requests
that are admitted. uvicorn's own parser reads the head of a refused request and skips its body; there is no second parser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from cuota.web.server.head import Headers

# A function of the scope and the header fields of every answer. It returns the whole answer to a request that is
# refused before any work, and None for every other request.
RefuseAtOnce = Callable[[Any, Headers], bytes | None]


class RefusingProtocol(HttpToolsProtocol):
    """Asks the application's `refuse_at_once`, if it has one, before it starts a request."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Answer the request if it is refused now, and start it otherwise."""
        refuse: RefuseAtOnce | None = getattr(self.app, "refuse_at_once", None)
        # A request that closes its connection, or waits for "100 Continue", needs uvicorn's task, which handles both.
        if refuse is not None and cycle.keep_alive and not cycle.waiting_for_100_continue:
            answer = refuse(cycle.scope, self.server_state.default_headers)
            if answer is not None:
                self.transport.write(answer)
                cycle.response_started = cycle.response_complete = True
                cycle.on_response()
                return
        super()._start_asgi_task(cycle, app)
