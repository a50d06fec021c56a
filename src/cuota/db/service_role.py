"""The database role of the service. It is not a superuser, owns nothing, and has only the rights of `cuota_app`.

The embedded PostgreSQL has the role `cuota_service`. For other databases, an operator creates the role (docs/running.md).
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
_OURS = "'public', 'card_simulator', 'message_simulator', 'issuing_simulator', 'card_processor', 'bank_simulator', 'bank_files'"
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
    """The rights of the role with which this session began."""

    name: str
    superuser: bool
    bypasses: bool
    makes_roles: bool
    owner: bool
    member: bool
    inherits: bool

    @property
    def excess(self) -> str | None:
        """Describe a right that the service's role should not have, or None."""
        if self.superuser:
            return "is a superuser"
        if self.owner:
            return "owns the tables"
        if self.bypasses:
            return "bypasses row-level security (BYPASSRLS)"
        return "can create roles, and so give itself any right (CREATEROLE)" if self.makes_roles else None

    @property
    def takes(self) -> str | None:
        """The role that sessions must switch to, or None if this role has exactly the service's rights."""
        return GROUP if self.excess or not self.inherits else None


async def read(connection: asyncpg.Connection) -> RoleRights:
    """Return the rights of this session's role."""
    return RoleRights(*await connection.fetchrow(_READ))


async def required(connection: asyncpg.Connection) -> bool:
    """Return whether this database was created or served with a separate role. Production then requires one."""
    return bool(await connection.fetchval(_REQUIRED))


async def require(connection: asyncpg.Connection) -> None:
    """Record that production requires a separate role from now on."""
    await connection.execute(_REQUIRE)


async def connect(where: dict[str, Any], **more: Any) -> tuple[asyncpg.Connection, dict[str, Any]]:
    """Open a session with the service's role. Return it with its connection arguments.

    The service never connects to the embedded PostgreSQL as its owner.
    """
    if where.get("user") != OWNER:
        return await hosts.connect(**where, **more), where
    service = {**where, "user": SERVICE}
    try:
        return await hosts.connect(**service, **more), service
    except asyncpg.InvalidAuthorizationSpecificationError:
        # This is the first start, or an earlier release has started the PostgreSQL that is running.
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
    """Create the service's role in the embedded PostgreSQL, and allow the owner's system users to connect with it."""
    owner = await hosts.connect(**where)
    try:
        # A lost role is simply created again, so this commit need not wait for a standby.
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
    """Add the service's lines to the user map, as `embedded/cluster.py` writes them. An earlier release's map lacks them."""
    lines = file.read_text().splitlines()
    more = [line.removesuffix(OWNER) + SERVICE for line in lines if line.endswith(f" {OWNER}")]
    missing = [line for line in more if line not in lines]
    if missing:
        file.write_text("\n".join([*lines, *missing]) + "\n")
