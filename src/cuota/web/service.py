"""The resources that every request handler uses, and how a handler gets them from its request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request

from cuota.config import Settings
from cuota.core.credential import require_scope
from cuota.core.instant import TargetInstant
from cuota.core.merchant import Merchant
from cuota.flows.context import Context
from cuota.flows.merchant.authenticate import Callers
from cuota.flows.merchant.keys import Keys
from cuota.web.probe import Probe


class ClockMover(Protocol):
    """Moves the sandbox's clock for the dashboard, in this process (run/mover.py)."""

    async def start(self, target: TargetInstant) -> bool:
        """Begin to move the clock. Return whether the move is already complete. Raises CannotMoveTime or BadInstant."""


@dataclass(frozen=True, slots=True)
class Service:
    """The resources of one process. Each process makes one `Service`. `mover` is None outside the sandbox."""

    context: Context
    keys: Keys
    callers: Callers
    probe: Probe
    mover: ClockMover | None = None

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
    merchant, scope = await service_of(request).callers.caller(request.headers.get("authorization"))
    # The access log names the merchant, never the token.
    request.scope["merchant_id"] = merchant.merchant_id
    # Other code also sets merchant_id, for example for a signed request. Only this function has checked the token.
    request.scope["token_good"] = True
    require_scope(scope, request.method, request.scope["route"].path)
    return merchant
