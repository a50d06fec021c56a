"""What every request handler is handed: the context, the callers, and the call at hand."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from cuota.config import Settings
from cuota.core.merchant import Merchant
from cuota.flows.context import Context
from cuota.flows.merchant.authenticate import Callers
from cuota.flows.merchant.keys import Keys
from cuota.web.server.probe import Probe


@dataclass(frozen=True, slots=True)
class Service:
    """Made once a process."""

    context: Context
    keys: Keys
    callers: Callers
    probe: Probe

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.context.settings


def service_of(request: Request) -> Service:
    """The process's service."""
    service: Service = request.scope["app"].service
    return service


async def merchant_of(request: Request) -> Merchant:
    """Who calls; raises Refused(unauthorized)."""
    merchant = await service_of(request).callers.merchant(request.headers.get("authorization"))
    # The access log names the merchant, never the token.
    request.scope["merchant_id"] = merchant.merchant_id
    # Others are named in the log too: whose the order is, or who signed. Only here the token was looked at.
    request.scope["token_good"] = True
    return merchant
