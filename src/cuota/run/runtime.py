"""Opens the resources of a process: the migrated and checked database, the rails, and the secrets."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import asyncpg

from cuota.config import REQUIRED, Settings
from cuota.core.risk.policy import Policy
from cuota.db import hosts, installation, service_rights, service_role, workers
from cuota.db.cluster.entry_node import require_entry
from cuota.db.cluster.serves import require_serving
from cuota.db.embedded.server import open_embedded
from cuota.db.lock_wait import LockWait
from cuota.db.merchant import last_served
from cuota.db.merchant.last_served import LastServed
from cuota.db.migrate import OnProgress, migrate, untold
from cuota.db.nodes import refuse_worker
from cuota.db.open_pool import most_sessions, open_pool, room_for_sessions
from cuota.db.pool import GONE, UnsafeDatabase
from cuota.db.sealed import SESSION_NAME
from cuota.db.vault import Vault
from cuota.flows.context import Context, utc_now
from cuota.flows.database_clock import DatabaseClock
from cuota.flows.merchant.keys import ensure_key
from cuota.flows.risk.keep_policy import WrongPolicy, keep_policy, read_policy
from cuota.flows.secret.open_vault import open_vault
from cuota.rails.load import load

WAIT_FOR_DATABASE = 30.0
# After this time without an answer, a person at the terminal is told why the start takes so long.
SILENT_FOR = 1.0
# The sessions that stay free for commands beside the worker processes.
FOR_COMMANDS = 10


@contextlib.contextmanager
def database(settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield the arguments of asyncpg.connect. The embedded PostgreSQL runs as long as any caller is inside this block."""
    if settings.database_url is not None:
        yield {"dsn": settings.database_url}
        return
    with open_embedded(settings.data_dir) as embedded:
        yield dict(embedded.dsn_kwargs)


def owner(settings: Settings, where: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments to connect as the owner of the tables, which migrations and copies of the sandbox need."""
    return {"dsn": settings.database_owner_url} if settings.database_owner_url else where


def lock_wait(where: dict[str, Any]) -> LockWait:
    """Return how a change of tables waits for its locks, and prints which session holds them. `where` is the owner's address."""
    return LockWait(lambda: hosts.connect(**where, timeout=5), _tell)


async def migrated(settings: Settings, where: dict[str, Any], told: OnProgress = untold) -> list[str]:
    """Wait for the database and bring it up to date. Return the names of the applied migrations.

    A role that does not own the tables cannot migrate; then the database must be up to date already.
    """
    connection = await _connect(owner(settings, where))
    try:
        await refuse_worker(connection)
        if await service_rights.may_migrate(connection):
            wait = lock_wait(owner(settings, where))
            return await migrate(connection, settings.environment, told, wait)
        await service_rights.require_current(connection, settings.environment)
        return []
    finally:
        await connection.close()


async def judged_role(settings: Settings, where: dict[str, Any]) -> str | None:
    """Refuse a database role with too few or too many rights (UnsafeDatabase). Return a warning, or None."""
    connection, _ = await service_role.connect(where, timeout=5)
    try:
        return await service_rights.settle(connection, sandbox=settings.sandbox)
    finally:
        await connection.close()


async def checked_cluster(where: dict[str, Any], entry_url: str | None = None) -> list[str]:
    """Refuse an unusable Citus cluster (UnsafeDatabase). Return a warning for each node that does not answer."""
    connection, _ = await service_role.connect(where, timeout=5)
    try:
        takes = (await service_role.read(connection)).takes
        if takes:
            await connection.execute(f"SET ROLE {takes}")
        down = await require_serving(connection)
        entered = entry_url is None or await require_entry(connection, entry_url, takes)
    finally:
        await connection.close()
    said = "does not answer. Its merchants get 503 until it is back; the others are served."
    warnings = [
        f"The database node {node.name} (node {node.number} of the Citus cluster) {said}" for node in down
    ]
    if not entered:
        warnings.append(
            "The worker of CUOTA_DATABASE_ENTRY_URL does not answer. Orders go through the coordinator until it is back."
        )
    return warnings


async def too_many_sessions(context: Context, workers: int) -> str | None:
    """Return a warning if the database has too few sessions for this many worker processes; else None.

    Raises UnsafeDatabase if it is the embedded one, whose limit nobody can change.
    """
    room = await room_for_sessions(context.pool)
    each = most_sessions(context.settings.pool_size, sharded=context.pool.sharded)
    if workers * each + FOR_COMMANDS <= room:
        return None
    most = max(1, (room - FOR_COMMANDS) // each)
    said = (
        f"{workers} worker processes may need {workers * each} database sessions, and commands need {FOR_COMMANDS} more. This PostgreSQL "
        f"allows {room}."
    )
    if context.settings.database_url is None:
        raise UnsafeDatabase(f"{said} Use at most --workers {most}, or a smaller CUOTA_POOL_SIZE.")
    return f"{said} Increase its max_connections, or use a smaller CUOTA_POOL_SIZE or fewer --workers."


async def check_database(settings: Settings, where: dict[str, Any]) -> None:
    """Refuse an unusable database (UnsafeDatabase), and print a warning for each smaller problem."""
    warn(await judged_role(settings, where), *await checked_cluster(where, settings.database_entry_url))


def warn(*warnings: str | None) -> None:
    """Print each warning that is not None."""
    for warning in filter(None, warnings):
        print(f"cuota: warning: {warning}", file=sys.stderr, flush=True)


def _tell(text: str) -> None:
    print(f"cuota: {text}", file=sys.stderr, flush=True)


async def _connect(where: dict[str, Any]) -> asyncpg.Connection:
    began, told = time.monotonic(), False
    while True:
        try:
            return await hosts.connect(**where, timeout=5)
        except (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError) as problem:
            raise UnsafeDatabase(f"CUOTA_DATABASE_URL: {problem}.") from None
        except (*GONE, TimeoutError) as problem:
            waited = time.monotonic() - began
            if waited > WAIT_FOR_DATABASE:
                raise UnsafeDatabase(
                    f"Cannot reach the database: {problem}. Check CUOTA_DATABASE_URL."
                ) from None
            if waited > SILENT_FOR and not told:
                told = True
                said = (
                    f"cannot reach the database yet: {problem}. Trying for {WAIT_FOR_DATABASE:.0f} seconds."
                )
                _tell(said)
            time.sleep(0.2)  # noqa: ASYNC251 - nothing else runs at start


async def served_beside(context: Context) -> str | None:
    """Return a warning if another service, with another address, is running on this database; else None."""
    served = await last_served.read(context.pool)
    ours = context.settings.audience
    if served is None or served.audience == ours or not await workers.count_alive(context.pool):
        return None
    return (
        f"another service is running on these data: {served.audience}. Both do the background work. From now on, commands name this one, "
        f"{ours}. For a separate sandbox, set CUOTA_DATA_DIR."
    )


async def note_served(context: Context, *, decides: bool) -> None:
    """Store settings of the running service for commands, such as the audience, the letters' texts and the policy."""
    settings = context.settings
    if decides:
        await keep_policy(context.pool, settings.policy, context.policy)
    version = context.policy.version if decides else None
    said = LastServed(
        settings.audience,
        version,
        settings.creditor,
        settings.creditor_agency,
        settings.brand_name,
        settings.loopback_webhooks,
        settings.onboarding,
    )
    await last_served.note(context.pool, said)


async def as_served(context: Context, *, address: bool) -> Context:
    """Return the context with settings of the service that ran last, such as the letters' texts; with `address`, also its audience."""
    served, settings = await last_served.read(context.pool), context.settings
    if served is None:
        return context
    known = replace(
        settings,
        audience=served.audience if address else settings.audience,
        creditor=served.creditor or settings.creditor,
        creditor_agency=served.agency or settings.creditor_agency,
        brand_name=served.brand_name or settings.brand_name,
        loopback_webhooks=settings.loopback_webhooks and served.loopback_webhooks is not False,
        # A shell that does not name the setting must not create a merchant that needs no approval.
        onboarding=REQUIRED if served.onboarding == REQUIRED else settings.onboarding,
    )
    return replace(context, settings=known)


def _policy(settings: Settings) -> Policy:
    try:
        return read_policy(settings.policy)[0]
    except WrongPolicy as wrong:
        raise WrongPolicy(f"CUOTA_POLICY: {wrong}") from None


@contextlib.asynccontextmanager
async def opened(
    settings: Settings,
    where: dict[str, Any],
    *,
    pool_size: int | None = None,
    now: Callable[[], datetime] = utc_now,
    clock: DatabaseClock | None = None,
    decides: bool = True,
) -> AsyncIterator[Context]:
    """Open a context on a migrated database, and close its pool at the end.

    `clock` is the service's clock, which the caller follows. Without one, the time is `now`, by default that of the machine's own clock.

    If `decides` is false, the context gets the policy of the release, and an invalid policy in the shell's settings is not an
    error.
    """
    policy = _policy(settings) if decides else read_policy(None)[0]
    key_id = Vault(settings.secret_key).key_id
    size, entry_url = pool_size or settings.pool_size, settings.database_entry_url
    pool = await open_pool(where, size, f"{SESSION_NAME}{key_id}", entry_url=entry_url)
    try:
        vault = await open_vault(pool, settings.secret_key, settings.old_secret_keys)
        now = clock.now if clock else now
        rails = load(settings.rails, pool, vault, now)
        values_from = await installation.agreement_values_from(pool)
        context = Context(settings, pool, rails, vault, policy, values_from, now=now)
        if clock:
            context = replace(context, real_now=clock.real_now, new_id=clock.new_id)
        await ensure_key(context)
        try:
            yield context
        finally:
            await rails.close()
    finally:
        await pool.close()
