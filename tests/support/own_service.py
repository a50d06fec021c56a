"""The whole application on a database of the test's own, without a port: spoiling it harms no other test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import httpx

from cuota import config
from cuota.flows.context import Context
from cuota.run import runtime
from cuota.web.app import make_app
from support.makers import Clock, Merchant, Running, make_merchant


class InProcess(Running):
    """A running service that is called without a socket; each exchange is held against the contract as ever."""

    def client(self, **more: Any) -> httpx.AsyncClient:
        return super().client(transport=httpx.ASGITransport(app=self.app), **more)


@dataclass
class Own:
    """A service and its two merchants; `where` reaches its database as the owner."""

    service: InProcess
    merchant: Merchant
    auto_merchant: Merchant
    where: dict[str, Any]

    @property
    def context(self) -> Context:
        return self.service.context

    @asynccontextmanager
    async def owner(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection as the database's owner, who may do what grants forbid the service."""
        connection = await asyncpg.connect(**self.where)
        try:
            yield connection
        finally:
            await connection.close()


@asynccontextmanager
async def opened_own(settings: config.Settings, where: dict[str, Any]) -> AsyncIterator[Own]:
    """A service on this database, with a merchant that captures by calls and one whose orders are captured at once."""
    clock = Clock()
    async with runtime.opened(settings, where, pool_size=16) as context:
        moved = replace(context, now=clock.now)
        service = InProcess(settings, moved, clock, make_app(moved))
        async with (
            make_merchant(service, defer_funds_capture=True) as merchant,
            make_merchant(service, defer_funds_capture=False) as auto_merchant,
        ):
            yield Own(service, merchant, auto_merchant, where)
