"""Opening what a process needs: the database, migrated and ours; the rails; the secrets."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from typing import Any

import asyncpg

from cuota.config import Settings
from cuota.db.embedded import open_embedded
from cuota.db.migrate import migrate
from cuota.db.pool import GONE, UnsafeDatabase, open_pool
from cuota.db.vault import Vault
from cuota.flows.context import Context, utc_now
from cuota.flows.keep_policy import keep_policy
from cuota.flows.keys import ensure_key
from cuota.rails.load import load

WAIT_FOR_DATABASE = 30.0


@contextlib.contextmanager
def database(settings: Settings) -> Iterator[dict[str, Any]]:
    """What asyncpg.connect takes; the embedded PostgreSQL runs as long as anybody is inside."""
    if settings.database_url is not None:
        yield {"dsn": settings.database_url}
        return
    with open_embedded(settings.data_dir) as embedded:
        yield dict(embedded.dsn_kwargs)


async def migrated(settings: Settings, where: dict[str, Any]) -> list[str]:
    """Bring the database up to date, waiting for it to be there; answers the names that were applied."""
    connection = await _connect(where)
    try:
        return await migrate(connection, settings.environment)
    finally:
        await connection.close()


async def _connect(where: dict[str, Any]) -> asyncpg.Connection:
    until = time.monotonic() + WAIT_FOR_DATABASE
    while True:
        try:
            return await asyncpg.connect(**where, timeout=5)
        except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError) as problem:
            raise UnsafeDatabase(f"CUOTA_DATABASE_URL: {problem}.") from None
        except (*GONE, TimeoutError) as problem:
            if time.monotonic() > until:
                raise UnsafeDatabase(
                    f"The database cannot be reached: {problem}. See CUOTA_DATABASE_URL."
                ) from None
            time.sleep(0.2)  # noqa: ASYNC251 - nothing else runs at start


async def note_audience(context: Context) -> None:
    """Write down what the running service calls itself, for commands that are not told."""
    await context.pool.execute(
        "INSERT INTO last_served (audience) VALUES ($1) ON CONFLICT (single) DO UPDATE SET audience = excluded.audience",
        context.settings.audience,
    )


async def noted_audience(context: Context) -> str:
    """The audience of the service that ran last; the settings' own where none has."""
    row = await context.pool.fetchrow("SELECT audience FROM last_served")
    return str(row["audience"]) if row else context.settings.audience


@contextlib.asynccontextmanager
async def opened(
    settings: Settings,
    where: dict[str, Any],
    *,
    pool_size: int | None = None,
    now: Callable[[], datetime] = utc_now,
) -> AsyncIterator[Context]:
    """A context on a migrated database; closes its pool at the end. `now` is the clock: the sandbox's can be moved."""
    pool = await open_pool(where, pool_size or settings.pool_size)
    try:
        vault = Vault(settings.secret_key)
        rails = load(
            settings.card_rail,
            settings.message_rail,
            pool,
            sandbox=settings.sandbox,
            senders=settings.senders,
            issuing=settings.issuing_rail,
            safe=vault,
            now=now,
        )
        policy = await keep_policy(pool, settings.policy)
        context = Context(settings, pool, rails, vault, policy, now=now)
        await ensure_key(context)
        yield context
    finally:
        await pool.close()
