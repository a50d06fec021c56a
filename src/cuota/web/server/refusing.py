"""The protocol of a connection under overload: a request that admission refuses is answered once its head is read.

For each request uvicorn makes a scope, a cycle and a task. A flood that is refused needs none of them, so the process has
more time for the requests that are admitted. uvicorn's own parser reads the head of a refused request and skips its body;
there is no second parser.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from cuota.web.server.head import Headers

# A function of the method, the target, the header fields of a request, and the header fields of every answer. It returns
# the whole answer to a request that is refused before any work, and None for every other request.
RefuseAtOnce = Callable[[bytes, bytes, Headers, Headers], bytes | None]


def _answered() -> RequestResponseCycle:
    """Return the cycle of a request that was answered. Many connections share it, and nothing reads what they change."""
    cycle = RequestResponseCycle(
        scope={},  # type: ignore[typeddict-item]
        transport=None,  # type: ignore[arg-type]
        flow=None,  # type: ignore[arg-type]
        logger=None,  # type: ignore[arg-type]
        access_logger=None,  # type: ignore[arg-type]
        access_log=False,
        default_headers=[],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=True,
        on_response=lambda: None,
    )
    cycle.response_started = cycle.response_complete = True
    return cycle


# The cycle of a connection whose requests were all refused. uvicorn skips the body of a request whose cycle is complete.
_ANSWERED = _answered()


class RefusingProtocol(HttpToolsProtocol):
    """Asks the application's `refuse_at_once`, if it has one, before it starts a request."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the connection closed.

        Its requests refer to the connection. If it kept referring to them, only a garbage collection would free both.
        """
        super().connection_lost(exc)
        self.cycle = self.scope = None  # type: ignore[assignment]

    def _refused_at_once(self) -> bool:
        """Answer the request whose head is complete if the application refuses it now. Return whether it was answered."""
        refuse: RefuseAtOnce | None = getattr(self.app, "refuse_at_once", None)
        cycle = self.cycle
        if refuse is None or (cycle is not None and not cycle.response_complete) or not self._is_plain():
            return False
        answer = refuse(self.parser.get_method(), self.url, self.headers, self.server_state.default_headers)
        if answer is None:
            return False
        self.transport.write(answer)
        self.server_state.total_requests += 1
        if cycle is None:
            self.cycle = _ANSWERED
        # The head of this request is no longer a part of a request in progress.
        self.scope = self.cycle.scope
        return True

    def _is_plain(self) -> bool:
        """Return whether uvicorn has nothing else to do for this request: close, switch protocols, continue, or wait."""
        parser = self.parser
        return not (
            self.expect_100_continue
            or self.flow.write_paused
            or parser.should_upgrade()
            or not parser.should_keep_alive()
            or parser.get_http_version() != "1.1"
        )
