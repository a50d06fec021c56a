"""Refusing a start with a database role that has too few rights or too many, in words that say what to do."""

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
    """The database is behind, and this role may not change that."""
    return UnsafeDatabase(
        f"The database {what}, and the role {name} may not migrate it. As its owner: cuota migrate --database"
        f" postgresql://OWNER:PASSWORD@HOST/DATABASE, then start again. {HOW}"
    )


async def may_migrate(connection: Connection) -> bool:
    """Whether this session owns the tables, or may make them."""
    return bool(await connection.fetchval(_MAY_MIGRATE))


async def require_current(connection: Connection, environment: str) -> None:
    """For a role that cannot migrate: refuse a database that is not at this release."""
    await require_durable(connection)
    name = (await service_role.read(connection)).name
    if not await connection.fetchval(_THERE):
        raise migrate_first(name, "has no tables yet")
    try:
        done = {row["name"] for row in await connection.fetch("SELECT name FROM migrations")}
    except asyncpg.InsufficientPrivilegeError:
        # Either it is older than the release that grants this, or the role has no rights at all.
        if (await service_role.read(connection)).member:
            raise migrate_first(name, "is of an earlier release") from None
        raise lacking(name) from None
    ours = {each for each, _ in files()}
    if done - ours:
        raise UnsafeDatabase(
            f"The database is newer than this program (it has {max(done - ours)}). Start the newer release."
        )
    if ours - done:
        raise migrate_first(name, f"lacks {len(ours - done)} migrations (the first is {min(ours - done)})")
    await claim(connection, environment)


def lacking(name: str) -> UnsafeDatabase:
    """The role has not even the service's rights."""
    return UnsafeDatabase(
        f"The role {name} of CUOTA_DATABASE_URL has not the service's rights. As the database's owner:"
        f' GRANT cuota_app TO "{name}"; {HOW}'
    )


async def settle(connection: Connection, *, sandbox: bool) -> str | None:
    """Judge the role of this session; answers a warning, or None. Raises UnsafeDatabase.

    In production a role of too many rights is refused, unless an earlier release has served this database with one and
    no role of its own has been used since.
    """
    standing = await service_role.read(connection)
    if not standing.member and not standing.superuser:
        raise lacking(standing.name)
    if standing.excess is None:
        if not sandbox:
            await _require(connection, standing)
        return None
    cure = f"Give the service a role of its own and migrate with --database. {HOW}"
    said = f"The role {standing.name} of CUOTA_DATABASE_URL {standing.excess}. {cure}"
    if not sandbox and await service_role.required(connection):
        raise UnsafeDatabase(said)
    later = "" if sandbox else " Once it has started with such a role, this one will be refused."
    return said + later


async def _require(connection: Connection, standing: RoleRights) -> None:
    """Production has a role of its own from here on."""
    if standing.takes is not None:
        await connection.execute(f"SET ROLE {standing.takes}")
    await service_role.require(connection)
