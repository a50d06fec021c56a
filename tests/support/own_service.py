"""The whole application on the test's own database, without a port.

A test may damage this service without an effect on other tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import httpx

from cuota import config
from cuota.flows.context import Context
from cuota.run import runtime
from cuota.web.app import make_app
from support.makers import Clock, Merchant, Running, make_merchant


class InProcess(Running):
    """A running service that is called without a socket. Each exchange is checked against the contract."""

    def client(self, **more: Any) -> httpx.AsyncClient:
        return super().client(transport=httpx.ASGITransport(app=self.app), **more)


@dataclass
class Own:
    """A service and its two merchants. `where` has the connection arguments of the database's owner."""

    service: InProcess
    merchant: Merchant
    auto_merchant: Merchant
    where: dict[str, Any]

    @property
    def context(self) -> Context:
        return self.service.context

    @asynccontextmanager
    async def owner(self) -> AsyncIterator[asyncpg.Connection]:
        """Open a connection as the database's owner, who has rights that the service does not have."""
        connection = await asyncpg.connect(**self.where)
        try:
            yield connection
        finally:
            await connection.close()


@asynccontextmanager
async def opened_own(settings: config.Settings, where: dict[str, Any]) -> AsyncIterator[Own]:
    """Start a service on this database, with a merchant that captures by API calls and one that captures immediately."""
    clock = Clock()
    async with runtime.opened(settings, where, pool_size=16, now=clock.now) as context:
        service = InProcess(settings, context, clock, make_app(context))
        async with (
            make_merchant(service, defer_funds_capture=True) as merchant,
            make_merchant(service, defer_funds_capture=False) as auto_merchant,
        ):
            yield Own(service, merchant, auto_merchant, where)
