"""The resources that every request handler uses, and how a handler gets them from its request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from starlette.requests import Request
from starlette.types import Scope

from cuota.config import Settings
from cuota.core.credential import require_scope
from cuota.core.instant import TargetInstant
from cuota.core.merchant import Merchant
from cuota.flows.context import Context
from cuota.flows.merchant.authenticate import Caller, Callers
from cuota.flows.merchant.keys import Keys
from cuota.web.body import CHECK_CALLER
from cuota.web.probe import Probe


class ClockMover(Protocol):
    """Moves the sandbox's clock for the dashboards, in this process, and keeps its forks (run/mover.py)."""

    async def start(self, target: TargetInstant) -> bool:
        """Begin to move the clock. Return whether the move is already complete. Raises CannotMoveTime or BadInstant."""

    async def fork(self, name: str) -> None:
        """Save a copy of the whole sandbox. Raises CannotMoveTime."""

    async def rewind(self, name: str) -> None:
        """Restore a fork. Raises CannotMoveTime."""

    async def forget(self, name: str) -> None:
        """Delete a fork. Raises CannotMoveTime."""


class CallLog(Protocol):
    """The request log of this process (`web/request_log.py`)."""

    def begin(self, caller: Caller) -> Any:
        """Begin the record of a call; None if the call is not logged."""

    def end(self, record: Any, scope: Scope, status: int, seconds: float) -> None:
        """Put the record of an answered call into the log's queue."""

    async def flush(self) -> None:
        """Write what is in the queue now."""

    async def run(self, stop: asyncio.Event, gate: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        """Write the log until `stop`."""


@dataclass(frozen=True, slots=True)
class Service:
    """The resources of one process. Each process makes one `Service`. `mover` is set only in a sandbox's serving process.

    `requests` is the request log; None if the log is off.
    """

    context: Context
    keys: Keys
    callers: Callers
    probe: Probe
    mover: ClockMover | None = None
    requests: CallLog | None = None

    @property
    def settings(self) -> Settings:
        """The settings of the service."""
        return self.context.settings


def service_of(request: Request) -> Service:
    """Return the process's `Service`."""
    service: Service = request.scope["app"].service
    return service


async def merchant_of(request: Request) -> Merchant:
    """Return the merchant whose access token the request has. Raises Refused(unauthorized), or Refused(insufficient_scope)."""
    service = service_of(request)
    caller = await service.callers.caller(request.headers.get("authorization"))
    # The access log names the merchant, never the token.
    request.scope["merchant_id"] = caller.merchant.merchant_id
    request.scope["caller"] = caller
    if service.requests is not None:
        request.scope["record"] = service.requests.begin(caller)
    # Other code also sets merchant_id, for example for a signed request. Only this function has checked the token.
    request.scope["token_good"] = True
    # A body may take minutes to arrive.
    request.scope[CHECK_CALLER] = partial(service.callers.require, caller)
    require_scope(caller.scope, request.method, request.scope["route"].path)
    return caller.merchant
