"""An empty database to migrate."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from cuota.db.embedded.server import Embedded


@pytest.fixture
async def empty(embedded: Embedded) -> AsyncIterator[dict[str, Any]]:
    """A database with nothing in it; what asyncpg.connect takes."""
    name = f"empty_{secrets.token_hex(4)}"
    owner = await asyncpg.connect(**{**embedded.dsn_kwargs, "database": "postgres"})
    await owner.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
    yield {**embedded.dsn_kwargs, "database": name}
    await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await owner.close()
