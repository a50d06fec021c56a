"""Requests while the sandbox's clock is moved or its database is copied.

A request sees the time that the clock was moved to. While the database is copied or restored, requests wait.
"""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import Receive, Scope, Send

from cuota.core.refusal import Code, Refused
from cuota.db.pool import BUSY, GONE
from cuota.flows.context import Context
from cuota.flows.sandbox.standstill import Standstill
from cuota.web.server.edge import Edge

WAIT_SECONDS = 5.0
WAIT_LONGER = Refused(
    Code.UNAVAILABLE,
    "The sandbox is being copied or taken back; nothing was applied. Try again shortly.",
    retry_after=1,
)


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
        gate = self._standstill.requests
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
                # The clock is read now, rather than at its next periodic reading: a request that somebody makes because
                # of an event must be made at the time of that event, or later.
                with contextlib.suppress(Refused, TimeoutError, *BUSY, *GONE):
                    await self._standstill.moved.refresh(self._context.pool)
            await self._edge(scope, receive, send)
