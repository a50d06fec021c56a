"""Holds requests back while the sandbox's database is copied or restored, and keeps the sandbox's clock current.

The operator can move the sandbox's clock. Each request uses the time of the moved clock.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from cuota.core.refusal import Code, Refused
from cuota.db.pool import BUSY, GONE
from cuota.flows.context import Context
from cuota.flows.sandbox.standstill import InFlightGate, Standstill
from cuota.web.server.edge import Edge

WAIT_SECONDS = 5.0
_GATE = "standstill_gate"
WAIT_LONGER = Refused(
    Code.UNAVAILABLE,
    "The sandbox is being copied or restored; nothing was applied. Try again shortly.",
    retry_after=1,
)


@contextlib.contextmanager
def copying(request: Request) -> Iterator[None]:
    """Let a fork or a rewind of the sandbox begin while this request waits for its result.

    A fork begins when no request is in progress. If this request counted as one, the request and the fork would wait for each other.
    """
    gate: InFlightGate | None = request.scope.get(_GATE)
    if gate is None:
        yield
        return
    gate.leave()
    try:
        yield
    finally:
        gate.enter()


class StandstillMiddleware:
    """Wraps the application, in the sandbox only. A request that waits for more than WAIT_SECONDS is answered 503."""

    def __init__(self, edge: Edge, context: Context, standstill: Standstill) -> None:
        self._edge = edge
        self._context = context
        self._standstill = standstill

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] in self._edge.routes.probes:
            await self._edge(scope, receive, send)
            return
        gate = scope[_GATE] = self._standstill.requests
        if gate.is_open and not self._standstill.moved.moving:
            gate.enter()
            try:
                await self._edge(scope, receive, send)
            finally:
                gate.leave()
            return
        await self._in_turn(scope, receive, send)

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await stack.enter_async_context(self._standstill.requests.inside())
            except TimeoutError:
                await self._edge.refuse(scope, receive, send, WAIT_LONGER)
                return
            if self._standstill.moved.moving:
                # Read the clock now instead of at its next periodic reading. A request that reacts to an event must not
                # get a time before that event.
                with contextlib.suppress(Refused, TimeoutError, *BUSY, *GONE):
                    await self._standstill.moved.refresh(self._context.pool)
            await self._edge(scope, receive, send)
