"""The protocol of a connection under overload: most requests that admission refuses are answered once their head is read.

uvicorn starts a task for each request. A flood that is refused needs no task, so the process has more time for the requests
that are admitted. uvicorn's own parser reads the head of a refused request and skips its body; there is no second parser.
After several refusals in a row the connection is not read for a short time (`rests.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from cuota.web.server.head import Headers
from cuota.web.server.rests import rests_of, ticks_after

# Returns the whole answer to a request that is refused before any work, or None for every other request. It takes the
# scope, and the header fields of every answer.
RefuseAtOnce = Callable[[Any, Headers], bytes | None]


class RefusingProtocol(HttpToolsProtocol):
    """Asks the application's `refuse_at_once`, if it has one, before it starts a request."""

    # Requests refused since the last one that was started.
    _refused_in_a_row = 0
    # Rests that are not over. Several begin if one packet held several requests.
    _rests = 0

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Answer the request if it is refused now, and start it otherwise."""
        refuse: RefuseAtOnce | None = getattr(self.app, "refuse_at_once", None)
        # A request that closes its connection, or waits for "100 Continue", needs uvicorn's task, which handles both.
        if refuse is not None and cycle.keep_alive and not cycle.waiting_for_100_continue:
            answer = refuse(cycle.scope, self.server_state.default_headers)
            if answer is not None:
                self.transport.write(answer)
                cycle.response_started = cycle.response_complete = True
                self._refused_in_a_row += 1
                cycle.on_response()
                self._rest()
                return
        self._refused_in_a_row = 0
        super()._start_asgi_task(cycle, app)

    def _rest(self) -> None:
        """Stop reading for a moment if several requests in a row were refused."""
        ticks = ticks_after(self._refused_in_a_row)
        if ticks:
            self.flow.pause_reading()
            self._rests += 1
            rests_of(self.server_state, self.loop).begin(self, ticks)

    def read_on(self) -> None:
        """Read again when the last rest is over. While a request is in progress, uvicorn decides when to read."""
        self._rests -= 1
        in_progress = self.cycle is not None and not self.cycle.response_complete
        if not self._rests and not in_progress and not self.transport.is_closing():
            self.flow.resume_reading()
