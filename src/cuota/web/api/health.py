"""`GET /health/live` and `/health/ready`."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.db.documents import encode
from cuota.db.pool import GONE, Pool

_OK = encode({"status": "ok"})
NO_STORE = {"Cache-Control": "no-store"}


class Probe:
    """Asks the database for all who ask at the same time: a place is found always here, and sessions are few."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._asking: asyncio.Task[None] | None = None

    async def answers(self) -> None:
        """Return if the database does; raises what the pool raises."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(self._asked)
        await asyncio.shield(self._asking)

    async def _ask(self) -> None:
        await self._pool.fetchrow("SELECT 1")

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._asking = None
        if not task.cancelled():
            # Whoever asked may have gone, and nobody else would be told.
            task.exception()


async def live(request: Request) -> Response:
    """The process answers."""
    del request
    return Response(_OK, headers=NO_STORE, media_type="application/json")


async def ready(request: Request) -> Response:
    """It takes work: the database answers, and it is not stopping."""
    if request.app.state.draining:
        raise Refused(Code.UNAVAILABLE, "The service is stopping.", retry_after=5)
    try:
        await request.app.state.probe.answers()
    except GONE:
        raise Refused(Code.UNAVAILABLE, "The database does not answer.", retry_after=2) from None
    return Response(_OK, headers=NO_STORE, media_type="application/json")
