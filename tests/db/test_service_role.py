"""The service connects as its own database role, which owns nothing and has no more rights than it needs."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from cuota import config
from cuota.db import service_role
from cuota.db.embedded.server import open_embedded
from cuota.db.open_pool import open_pool
from cuota.db.pool import UnsafeDatabase
from cuota.db.sandbox import clock
from cuota.run import runtime
from support.makers import Merchant


@dataclass
class Roles:
    """A database with its owner, a role for the service, and other roles, which all connect with a password."""

    owner: dict[str, Any]
    name: str

    async def run(self, sql: str) -> Any:
        connection = await asyncpg.connect(**self.owner)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    async def session(self, more: str = "", *, member: bool = True) -> asyncpg.Connection:
        """Create a role, and open a session that began as this role."""
        role = f"{self.name}_{secrets.token_hex(2)}"
        await self.run(f"CREATE ROLE {role} {more}")
        if member:
            await self.run(f"GRANT cuota_app TO {role}")
        connection = await asyncpg.connect(**self.owner)
        await connection.execute(f"SET SESSION AUTHORIZATION {role}")
        return connection


@pytest.fixture
async def roles(own_database: dict[str, Any]) -> AsyncIterator[Roles]:
    made = Roles(own_database, f"role_{secrets.token_hex(4)}")
    yield made
    names = await made.run(
        f"SELECT array_agg(rolname::text) FROM pg_roles WHERE starts_with(rolname, '{made.name}')"
    )
    for name in names or []:
        await made.run(f"DROP OWNED BY {name}")
        await made.run(f"DROP ROLE {name}")


async def settle(connection: asyncpg.Connection, *, sandbox: bool) -> str | None:
    from cuota.db.service_rights import settle as judge

    return await judge(connection, sandbox=sandbox)


async def test_no_session_of_the_service_began_as_the_owner_or_a_superuser(
    settings: config.Settings, own_database: dict[str, Any]
) -> None:
    async with runtime.opened(settings, own_database, pool_size=2) as context, clock.connected(own_database):
        rows = await context.pool.fetch(
            """SELECT DISTINCT usename::text AS name FROM pg_stat_activity
                WHERE datname = current_database() AND application_name LIKE 'cuota%'"""
        )
        assert [row["name"] for row in rows] == ["cuota_service"]
        for sql in (
            "SET ROLE cuota_owner",
            "SET SESSION AUTHORIZATION cuota_owner",
            "ALTER TABLE orders DISABLE TRIGGER ALL",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await context.pool.execute(sql)
        # After RESET ROLE, the session has no additional rights.
        await context.pool.execute("RESET ROLE")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await context.pool.execute("UPDATE transfers SET amount = 1")


async def test_the_embedded_role_has_exactly_the_rights_of_cuota_app(own_database: dict[str, Any]) -> None:
    connection, where = await service_role.connect(own_database)
    found = await service_role.read(connection)
    await connection.close()
    assert where["user"] == "cuota_service"
    assert (found.excess, found.takes, found.inherits) == (None, None, True)


def _without_the_service(ident: Path) -> None:
    kept = [line for line in ident.read_text().splitlines() if "cuota_service" not in line]
    ident.write_text("\n".join(kept) + "\n")


async def test_a_postgresql_that_an_earlier_release_started_lets_the_service_connect(folder: Path) -> None:
    """PostgreSQL's user map has no line for the service's role, and the role does not exist."""
    with open_embedded(folder / "earlier") as embedded:
        where = dict(embedded.dsn_kwargs)
        connection = await asyncpg.connect(**where)
        _without_the_service(Path(await connection.fetchval("SHOW ident_file")))
        await connection.execute("SELECT pg_reload_conf()")
        await connection.execute("CREATE ROLE cuota_app NOLOGIN")
        await connection.close()
        connection, _ = await service_role.connect(where)
        assert await connection.fetchval("SELECT session_user") == "cuota_service"
        await connection.close()


@pytest.mark.parametrize(
    ("more", "said"),
    [("SUPERUSER", "is a superuser"), ("BYPASSRLS", "BYPASSRLS"), ("CREATEROLE", "CREATEROLE")],
)
async def test_a_role_with_too_many_rights_causes_a_warning_in_the_sandbox_and_is_refused_in_production(
    roles: Roles, more: str, said: str
) -> None:
    connection = await roles.session(more)
    assert said in str(await settle(connection, sandbox=True))
    with pytest.raises(UnsafeDatabase, match=r"docs/running\.md") as refused:
        await settle(connection, sandbox=False)
    assert said in str(refused.value)
    await connection.close()


async def test_a_role_that_owns_the_tables_or_may_become_their_owner_is_refused_in_production(
    roles: Roles,
) -> None:
    connection = await roles.session()
    role = await connection.fetchval("SELECT session_user")
    assert await settle(connection, sandbox=False) is None
    await roles.run(f"ALTER TABLE feeds OWNER TO {role}")
    with pytest.raises(UnsafeDatabase, match="owns the tables"):
        await settle(connection, sandbox=False)
    await roles.run("ALTER TABLE feeds OWNER TO cuota_owner")
    await connection.close()


async def test_the_error_about_a_role_without_the_service_s_rights_has_the_statement_that_grants_them(
    roles: Roles,
) -> None:
    connection = await roles.session(member=False)
    with pytest.raises(UnsafeDatabase, match=r'GRANT cuota_app TO "role_'):
        await settle(connection, sandbox=True)
    await connection.close()


async def test_an_installation_of_an_earlier_release_may_use_its_old_role_until_the_service_has_its_own_role(
    roles: Roles,
) -> None:
    await roles.run("UPDATE service_role SET required = false")
    powerful, own = await roles.session("SUPERUSER"), await roles.session()
    assert "will be refused" in str(await settle(powerful, sandbox=False))
    assert await settle(own, sandbox=False) is None
    with pytest.raises(UnsafeDatabase):
        await settle(powerful, sandbox=False)
    await powerful.close()
    await own.close()


async def test_a_role_that_cannot_migrate_gets_an_instruction_and_starts_after_the_migration(
    roles: Roles,
) -> None:
    from cuota.db.service_rights import may_migrate, require_current

    connection = await roles.session()
    assert not await may_migrate(connection)
    await require_current(connection, "sandbox")
    with pytest.raises(UnsafeDatabase, match="belongs to sandbox"):
        await require_current(connection, "production")
    await roles.run("DELETE FROM migrations WHERE name = '0012_secrets'")
    with pytest.raises(UnsafeDatabase, match=r"lacks 1 migrations .*0012_secrets.* cuota migrate --database"):
        await require_current(connection, "sandbox")
    await roles.run("REVOKE SELECT ON migrations FROM cuota_app")
    with pytest.raises(UnsafeDatabase, match=r"earlier release.* cuota migrate --database"):
        await require_current(connection, "sandbox")
    await roles.run("INSERT INTO migrations (name) VALUES ('9999_future')")
    await roles.run("GRANT SELECT ON migrations TO cuota_app")
    with pytest.raises(UnsafeDatabase, match="A newer release has migrated this database"):
        await require_current(connection, "sandbox")
    await connection.close()


async def test_a_new_database_requires_a_separate_role_for_the_service(
    roles: Roles,
) -> None:
    assert await roles.run("SELECT required FROM service_role") is True


async def test_a_role_that_does_not_inherit_its_rights_sets_the_role_cuota_app(roles: Roles) -> None:
    connection = await roles.session("NOINHERIT")
    found = await service_role.read(connection)
    assert (found.excess, found.takes) == (None, "cuota_app")
    await connection.close()


async def test_a_session_that_connected_as_an_owner_works_with_the_service_s_rights_only(
    own_database: dict[str, Any],
) -> None:
    """The operator of this sandbox has not created a role for the service yet."""
    host, name = own_database["host"], own_database["database"]
    pool = await open_pool({"dsn": f"postgresql://cuota_owner@/{name}?host={host}"}, 1)
    row = await pool.fetchrow("SELECT session_user::text AS began, current_user::text AS is")
    assert row is not None
    assert (row["began"], row["is"]) == ("cuota_owner", "cuota_app")
    await pool.close()


async def test_the_service_works_completely_as_its_own_role(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    assert (await merchant.move(order, "capture", "60.00")).status_code == 200
    assert (await merchant.move(order, "refund", "10.00")).status_code == 200
    row = await merchant.service.context.pool.fetchrow("SELECT session_user::text AS name")
    assert row is not None
    assert row["name"] == "cuota_service"
