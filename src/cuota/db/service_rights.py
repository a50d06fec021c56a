"""Refuses to start with a database role that has too few or too many rights. The error says what to do."""

from __future__ import annotations

import asyncpg

from cuota.db import service_role
from cuota.db.migrate import claim, files
from cuota.db.pool import Connection, UnsafeDatabase, require_durable
from cuota.db.service_role import RoleRights

HOW = "See docs/running.md, Database."
_MAY_MIGRATE = """SELECT CASE WHEN to_regclass('migrations') IS NULL
        THEN has_schema_privilege('public', 'CREATE') AND has_database_privilege(current_database(), 'CREATE')
    ELSE (SELECT pg_has_role(session_user, relowner, 'MEMBER') FROM pg_class WHERE oid = to_regclass('migrations')) END"""
_THERE = "SELECT to_regclass('migrations') IS NOT NULL"


def migrate_first(name: str, what: str) -> UnsafeDatabase:
    """Return the error for a database that needs a migration, which this role cannot do."""
    return UnsafeDatabase(
        f"The database {what}, and the role {name} cannot migrate it. As its owner, run: cuota migrate --database"
        f" postgresql://OWNER:PASSWORD@HOST/DATABASE. Then start again. {HOW}"
    )


async def may_migrate(connection: Connection) -> bool:
    """Return whether this session owns the tables, or can create them."""
    return bool(await connection.fetchval(_MAY_MIGRATE))


async def require_current(connection: Connection, environment: str) -> None:
    """Raise UnsafeDatabase if the database is not at this release. For roles that cannot migrate."""
    await require_durable(connection)
    name = (await service_role.read(connection)).name
    if not await connection.fetchval(_THERE):
        raise migrate_first(name, "has no tables of Cuota yet")
    try:
        done = {row["name"] for row in await connection.fetch("SELECT name FROM migrations")}
    except asyncpg.InsufficientPrivilegeError:
        # Either the database is older than the release that grants this right, or the role has no rights at all.
        if (await service_role.read(connection)).member:
            raise migrate_first(name, "belongs to an earlier release") from None
        raise lacking(name) from None
    ours = {each for each, _ in files()}
    if done - ours:
        raise UnsafeDatabase(
            f"A newer release has migrated this database (it has {max(done - ours)}). Start that release."
        )
    if ours - done:
        raise migrate_first(name, f"lacks {len(ours - done)} migrations (the first is {min(ours - done)})")
    await claim(connection, environment)


def lacking(name: str) -> UnsafeDatabase:
    """Return the error for a role that does not have the service's rights."""
    return UnsafeDatabase(
        f"The role {name} in CUOTA_DATABASE_URL does not have the service's rights. As the database's owner, run:"
        f' GRANT cuota_app TO "{name}"; {HOW}'
    )


async def settle(connection: Connection, *, sandbox: bool) -> str | None:
    """Check the role of this session. Return a warning, or None. Raises UnsafeDatabase.

    Production refuses a role with too many rights. The exception is a database that an earlier release has served with such a
    role, until it is served with a separate role for the first time.
    """
    standing = await service_role.read(connection)
    if not standing.member and not standing.superuser:
        raise lacking(standing.name)
    if standing.excess is None:
        if not sandbox:
            await _require(connection, standing)
        return None
    advice = f"Give the service a separate role, and migrate with --database. {HOW}"
    problem = f"The role {standing.name} in CUOTA_DATABASE_URL {standing.excess}. {advice}"
    if not sandbox and await service_role.required(connection):
        raise UnsafeDatabase(problem)
    later = "" if sandbox else " After the first start with a separate role, this role will be refused."
    return problem + later


async def _require(connection: Connection, standing: RoleRights) -> None:
    """Record that production uses a separate role from now on."""
    if standing.takes is not None:
        await connection.execute(f"SET ROLE {standing.takes}")
    await service_role.require(connection)
