"""The database role that the service runs as: not a superuser, owner of nothing, with the rights of `cuota_app` only.

The embedded PostgreSQL has one of its own, `cuota_service`. Elsewhere an operator makes one (docs/running.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from cuota.db import hosts
from cuota.db.embedded.folders import OWNER, SERVICE

GROUP = "cuota_app"
_RELOAD_SECONDS = 5.0
_OURS = "'public', 'card_simulator', 'message_simulator', 'issuing_simulator'"
_READ = f"""SELECT session_user::text AS name, r.rolsuper AS superuser, r.rolbypassrls AS bypasses,
    r.rolcreaterole AS makes_roles,
    EXISTS (SELECT FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace::regnamespace::text IN ({_OURS})
        AND pg_has_role(r.oid, c.relowner, 'MEMBER')) AS owner,
    coalesce((SELECT pg_has_role(r.oid, g.oid, 'MEMBER') FROM pg_roles g WHERE g.rolname = '{GROUP}'), false) AS member,
    coalesce((SELECT pg_has_role(r.oid, g.oid, 'USAGE') FROM pg_roles g WHERE g.rolname = '{GROUP}'), false) AS inherits
    FROM pg_roles r WHERE r.rolname = session_user"""
_REQUIRED = "SELECT required FROM service_role"
_REQUIRE = "UPDATE service_role SET required = true WHERE NOT required"


@dataclass(frozen=True, slots=True)
class RoleRights:
    """What the role that this session began as may do."""

    name: str
    superuser: bool
    bypasses: bool
    makes_roles: bool
    owner: bool
    member: bool
    inherits: bool

    @property
    def excess(self) -> str | None:
        """What makes it more than the service's role should be, in words."""
        if self.superuser:
            return "is a superuser"
        if self.owner:
            return "owns the tables"
        if self.bypasses:
            return "passes by row-level security (BYPASSRLS)"
        return "may make roles and so give itself any right (CREATEROLE)" if self.makes_roles else None

    @property
    def takes(self) -> str | None:
        """The role that its sessions have to change to; None where it has the rights as it is, and no others."""
        return GROUP if self.excess or not self.inherits else None


async def read(connection: asyncpg.Connection) -> RoleRights:
    """Of this session."""
    return RoleRights(*await connection.fetchrow(_READ))


async def required(connection: asyncpg.Connection) -> bool:
    """Whether this database has been served, or was made, with a role of its own: then production insists on one."""
    return bool(await connection.fetchval(_REQUIRED))


async def require(connection: asyncpg.Connection) -> None:
    """From now on production insists."""
    await connection.execute(_REQUIRE)


async def connect(where: dict[str, Any], **more: Any) -> tuple[asyncpg.Connection, dict[str, Any]]:
    """A session of the service, and where it is reached: the embedded PostgreSQL is never entered as its owner."""
    if where.get("user") != OWNER:
        return await hosts.connect(**where, **more), where
    service = {**where, "user": SERVICE}
    try:
        return await hosts.connect(**service, **more), service
    except asyncpg.InvalidAuthorizationSpecificationError:
        # The first start, or one beside a PostgreSQL that an earlier release has started.
        await _let_in(where)
    until = time.monotonic() + _RELOAD_SECONDS
    while True:
        try:
            return await hosts.connect(**service, **more), service
        except asyncpg.InvalidAuthorizationSpecificationError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)


async def _let_in(where: dict[str, Any]) -> None:
    """Make the embedded PostgreSQL's role for the service, and let the owner's system users enter as it."""
    owner = await hosts.connect(**where)
    try:
        # A role can be made again: that waits for no standby.
        await owner.execute("SET synchronous_commit = local")
        with contextlib.suppress(asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
            await owner.execute(f"CREATE ROLE {SERVICE} LOGIN")
        with contextlib.suppress(asyncpg.UniqueViolationError, asyncpg.InternalServerError):
            await owner.execute(f"GRANT {GROUP} TO {SERVICE}")
        _add_to_map(Path(await owner.fetchval("SHOW ident_file")))
        await owner.execute("SELECT pg_reload_conf()")
    finally:
        await owner.close()


def _add_to_map(file: Path) -> None:
    """As `embedded_cluster` writes it; a map of an earlier release lacks the service's lines."""
    lines = file.read_text().splitlines()
    more = [line.removesuffix(OWNER) + SERVICE for line in lines if line.endswith(f" {OWNER}")]
    missing = [line for line in more if line not in lines]
    if missing:
        file.write_text("\n".join([*lines, *missing]) + "\n")
