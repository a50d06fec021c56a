"""Makes the migrated database from which tests copy: in the embedded PostgreSQL of the run, or on a Citus
cluster."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from cuota import config
from cuota.db.embedded.server import Embedded
from cuota.run import runtime
from support import patience
from support.db.cluster import Nodes, nodes_of
from support.db.copies import copy_database, drop_database

_TEMPLATE = "cuota_template"


class Template(ABC):
    """A template, and the arguments of asyncpg.connect for the database that most tests share, as its
    owner."""

    shared: dict[str, Any]

    @abstractmethod
    async def copy(self, name: str) -> dict[str, Any]:
        """Copy the template, and return the arguments with which to connect to the copy."""

    @abstractmethod
    async def drop(self, name: str) -> None:
        """Drop a copy."""

    @asynccontextmanager
    async def copied(self) -> AsyncIterator[dict[str, Any]]:
        """Yield a copy that the caller may damage, and drop it at the end."""
        name = f"own_{secrets.token_hex(4)}"
        try:
            yield await self.copy(name)
        finally:
            await self.drop(name)


class _OnEmbedded(Template):
    def __init__(self, embedded: Embedded) -> None:
        self._embedded = embedded
        self.shared = dict(embedded.dsn_kwargs)

    async def begin(self, settings: config.Settings) -> None:
        await runtime.migrated(settings, self.shared)
        await copy_database(self._embedded, str(self.shared["database"]), _TEMPLATE)

    async def copy(self, name: str) -> dict[str, Any]:
        await copy_database(self._embedded, _TEMPLATE, name)
        return {**self.shared, "database": name}

    async def drop(self, name: str) -> None:
        await drop_database(self._embedded, name)


class _OnCluster(Template):
    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._name = f"template_{secrets.token_hex(4)}"
        self.shared = nodes.where(f"shared_{secrets.token_hex(4)}")

    async def begin(self, settings: config.Settings) -> None:
        await self._nodes.make(self._name)
        await runtime.migrated(settings, self._nodes.where(self._name))
        await self._nodes.close(self._name)
        await self.copy(self.shared["database"])

    async def end(self) -> None:
        await self.drop(self.shared["database"])
        await self.drop(self._name)

    async def copy(self, name: str) -> dict[str, Any]:
        await self._nodes.copy(self._name, name)
        where = self._nodes.where(name)
        connection = await asyncpg.connect(**where)
        # Citus does not send a session's lock_timeout to the nodes, but it sends this statement.
        await connection.execute(
            f"ALTER ROLE cuota_app IN DATABASE {name} SET lock_timeout = '{patience.SECONDS}s'"
        )
        await connection.close()
        return where

    async def drop(self, name: str) -> None:
        await self._nodes.drop(name)


@asynccontextmanager
async def on_embedded(embedded: Embedded, settings: config.Settings) -> AsyncIterator[Template]:
    """Yield a template in the embedded PostgreSQL, which stops at the end of the run."""
    made = _OnEmbedded(embedded)
    await made.begin(settings)
    yield made


@asynccontextmanager
async def on_cluster(url: str, settings: config.Settings) -> AsyncIterator[Template]:
    """Yield a template on every node of the cluster, and the shared database. Both are dropped at the end."""
    made = _OnCluster(await nodes_of(url))
    try:
        await made.begin(settings)
        yield made
    finally:
        await made.end()
