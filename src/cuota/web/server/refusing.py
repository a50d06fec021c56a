"""The protocol of a connection under overload: most requests that admission refuses are answered once their head is read.

uvicorn starts a task for each request. A flood that is refused needs no task, so the process has more time for the requests
that are admitted. uvicorn's own parser reads the head of a refused request and skips its body; there is no second parser.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from cuota.web.server.head import Headers

# Returns the whole answer to a request that is refused before any work, or None for every other request.
RefuseAtOnce = Callable[[Any, Headers], bytes | None]


def _never(_scope: Any, _fields: Headers) -> None:
    """Stand in for an application that refuses nothing at once."""


class RefusingProtocol(HttpToolsProtocol):
    """Asks the application's `refuse_at_once`, if it has one, before it starts a request."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._refuse_busy: RefuseAtOnce = getattr(config.loaded_app, "refuse_at_once", _never)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Answer the request if it is refused now, and start it otherwise."""
        # A request that closes its connection, or waits for "100 Continue", needs uvicorn's task, which handles both.
        if cycle.keep_alive and not cycle.waiting_for_100_continue:
            answer = self._refuse_busy(cycle.scope, self.server_state.default_headers)
            if answer is not None:
                self.transport.write(answer)
                cycle.response_started = cycle.response_complete = True
                cycle.on_response()
                return
        super()._start_asgi_task(cycle, app)
