"""A migrated database to copy from: in the embedded PostgreSQL of the run, or on a Citus cluster."""

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
from support.db.cluster import Nodes, nodes_of


class Template(ABC):
    """A template, and the database that most tests share: what asyncpg.connect takes, as its owner."""

    shared: dict[str, Any]

    @abstractmethod
    async def copy(self, name: str) -> dict[str, Any]:
        """Copy the template and return where the copy is."""

    @abstractmethod
    async def drop(self, name: str) -> None:
        """Drop a copy."""

    @asynccontextmanager
    async def copied(self) -> AsyncIterator[dict[str, Any]]:
        """A copy that the caller may spoil."""
        name = f"own_{secrets.token_hex(4)}"
        try:
            yield await self.copy(name)
        finally:
            await self.drop(name)


class _OnEmbedded(Template):
    def __init__(self, embedded: Embedded) -> None:
        self.shared = dict(embedded.dsn_kwargs)

    async def _run(self, sql: str) -> None:
        owner = await asyncpg.connect(**{**self.shared, "database": "postgres"})
        try:
            await owner.execute(sql)
        finally:
            await owner.close()

    async def begin(self, settings: config.Settings) -> None:
        await runtime.migrated(settings, self.shared)
        await self._run(
            f"CREATE DATABASE cuota_template TEMPLATE {self.shared['database']} STRATEGY file_copy"
        )

    async def copy(self, name: str) -> dict[str, Any]:
        await self._run(f"CREATE DATABASE {name} TEMPLATE cuota_template STRATEGY file_copy")
        return {**self.shared, "database": name}

    async def drop(self, name: str) -> None:
        await self._run(f"DROP DATABASE {name} WITH (FORCE)")


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
        return self._nodes.where(name)

    async def drop(self, name: str) -> None:
        await self._nodes.drop(name)


@asynccontextmanager
async def on_embedded(embedded: Embedded, settings: config.Settings) -> AsyncIterator[Template]:
    """A template in the embedded PostgreSQL, which ends with the run."""
    made = _OnEmbedded(embedded)
    await made.begin(settings)
    yield made


@asynccontextmanager
async def on_cluster(url: str, settings: config.Settings) -> AsyncIterator[Template]:
    """A template on every node of the cluster, and the shared database. Both are dropped at the end."""
    made = _OnCluster(await nodes_of(url))
    try:
        await made.begin(settings)
        yield made
    finally:
        await made.end()
