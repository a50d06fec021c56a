"""Migrations run forward only, once, by the first process that starts, and never on another program's database."""

from __future__ import annotations

import asyncio
import re
import secrets
from typing import Any

import asyncpg
import pytest

from cuota.db.embedded.server import Embedded
from cuota.db.migrate import files
from cuota.db.pool import UnsafeDatabase
from support.db.migrating import ask, migrated

ALL = [name for name, _ in files()]


async def test_an_empty_database_gets_every_migration_in_order(empty: dict[str, Any]) -> None:
    assert await migrated(empty) == ALL
    assert await ask(empty, "SELECT array_agg(name ORDER BY applied_at, name) FROM migrations") == ALL


async def test_migrating_again_does_nothing(empty: dict[str, Any]) -> None:
    await migrated(empty)
    columns = "SELECT md5(string_agg(c::text, ',' ORDER BY c::text)) FROM information_schema.columns c"
    before = await ask(empty, columns)
    assert await migrated(empty) == []
    assert await ask(empty, columns) == before


async def test_if_four_processes_migrate_at_once_each_migration_is_applied_once(
    empty: dict[str, Any],
) -> None:
    applied = await asyncio.gather(*(migrated(empty) for _ in range(4)))
    assert sorted(name for names in applied for name in names) == ALL
    assert await ask(empty, "SELECT count(*) FROM installation") == 1


async def test_four_databases_of_one_server_may_be_migrated_at_once(embedded: Embedded) -> None:
    names = [f"empty_{secrets.token_hex(4)}" for _ in range(4)]
    owner = await asyncpg.connect(**{**embedded.dsn_kwargs, "database": "postgres"})
    for name in names:
        await owner.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
    try:
        applied = await asyncio.gather(
            *(migrated({**embedded.dsn_kwargs, "database": name}) for name in names)
        )
        assert applied == [ALL] * 4
    finally:
        for name in names:
            await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await owner.close()


async def test_a_database_of_a_newer_release_is_refused_with_an_explanation(
    own_database: dict[str, Any],
) -> None:
    await ask(own_database, "INSERT INTO migrations (name) VALUES ('9999_the_future')")
    with pytest.raises(
        UnsafeDatabase, match=r"A newer release has migrated this database \(it has 9999_the_future\)"
    ):
        await migrated(own_database)


async def test_another_environment_s_database_is_refused_and_the_error_names_both_environments(
    own_database: dict[str, Any],
) -> None:
    with pytest.raises(UnsafeDatabase, match="belongs to sandbox, but CUOTA_ENVIRONMENT is production"):
        await migrated(own_database, "production")
    assert await ask(own_database, "SELECT environment FROM installation") == "sandbox"


async def test_another_environment_s_database_is_not_changed(own_database: dict[str, Any]) -> None:
    await ask(own_database, "DELETE FROM migrations WHERE name = '0002_card_simulator'")
    await ask(own_database, "DROP SCHEMA card_simulator CASCADE")
    with pytest.raises(UnsafeDatabase):
        await migrated(own_database, "production")
    assert await ask(own_database, "SELECT to_regnamespace('card_simulator')") is None


@pytest.mark.parametrize(
    "theirs", ["CREATE TABLE orders (id integer)", "CREATE TABLE migrations (id integer, batch integer)"]
)
async def test_a_database_of_another_program_is_refused_and_not_changed(
    empty: dict[str, Any], theirs: str
) -> None:
    await ask(empty, theirs)
    with pytest.raises(UnsafeDatabase, match="CUOTA_DATABASE_URL"):
        await migrated(empty)
    assert await ask(empty, "SELECT to_regclass('transfers')") is None


async def test_a_process_that_waits_for_the_lock_migrates_once_the_lock_is_free(
    empty: dict[str, Any],
) -> None:
    from cuota.db.locks import MIGRATE_LOCK

    holder = await asyncpg.connect(**empty)
    await holder.execute("SELECT pg_advisory_lock($1)", MIGRATE_LOCK)
    waiting = asyncio.create_task(migrated(empty))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    assert await ask(empty, "SELECT to_regclass('orders')") is None
    await holder.close()
    assert await waiting == ALL


@pytest.mark.parametrize(("name", "sql"), files(), ids=ALL)
def test_a_migration_that_removes_something_has_a_comment_with_the_reason(name: str, sql: str) -> None:
    """The previous release still runs while a migration is applied."""
    assert re.fullmatch(r"[0-9]{4}_[a-z0-9_]+", name)
    lines = sql.splitlines()
    for number, line in enumerate(lines):
        if (
            re.search(r"\b(DROP|RENAME|TRUNCATE)\b(?! ON)(?!.*FOR EACH)", line.partition("--")[0])
            and "TRIGGER" not in line
        ):
            assert "--" in line or lines[number - 1].startswith("--"), (
                f"{name} line {number + 1} takes something away: say in a comment why the previous release does not miss it."
            )


def test_migrations_are_numbered_without_gaps() -> None:
    assert [int(name[:4]) for name in ALL] == list(range(1, len(ALL) + 1))


@pytest.mark.parametrize(
    "table",
    [
        "transfers",
        "movements",
        "events",
        "decisions",
        "order_details",
        "installation",
        "policies",
        "models",
    ],
)
@pytest.mark.parametrize("right", ["UPDATE", "DELETE", "TRUNCATE"])
async def test_the_service_has_no_right_to_change_the_history(
    own_database: dict[str, Any], table: str, right: str
) -> None:
    assert await ask(own_database, f"SELECT has_table_privilege('cuota_app', '{table}', '{right}')") is False
    # A policy may be replaced until it has decided an order. After that, a trigger prevents every change (see the test
    # below).
    some = await ask(own_database, f"SELECT has_any_column_privilege('cuota_app', '{table}', 'UPDATE')")
    assert some is (table == "policies")
    assert await ask(own_database, f"SELECT has_table_privilege('cuota_app', '{table}', 'SELECT')") is True


async def test_no_role_can_change_a_policy_that_has_decided_an_order(own_database: dict[str, Any]) -> None:
    await ask(own_database, "INSERT INTO policies (version, text, decided_at) VALUES ('x', 'a', now())")
    for change in ("text = 'b'", "decided_at = NULL"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
            await ask(own_database, f"UPDATE policies SET {change}")


async def test_the_service_s_role_owns_nothing_and_cannot_get_more_rights(
    own_database: dict[str, Any],
) -> None:
    assert await ask(own_database, "SELECT count(*) FROM pg_class WHERE relowner = 'cuota_app'::regrole") == 0
    rights = "rolsuper OR rolcreaterole OR rolcreatedb OR rolcanlogin OR rolreplication OR rolbypassrls"
    assert await ask(own_database, f"SELECT {rights} FROM pg_roles WHERE rolname = 'cuota_app'") is False
    assert await ask(own_database, "SELECT has_schema_privilege('cuota_app', 'public', 'CREATE')") is False


async def test_the_key_of_every_merchant_s_table_begins_with_the_merchant(
    own_database: dict[str, Any],
) -> None:
    keyless = """SELECT array_agg(c.relname::text) FROM pg_class c
        JOIN pg_attribute m ON m.attrelid = c.oid AND m.attname = 'merchant_id'
        JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
        WHERE c.relnamespace = 'public'::regnamespace AND i.indkey[0] <> m.attnum"""
    # A credential, and what a browser holds, are looked up before it is known whose they are. A reservation and a waiver are the
    # consumer's.
    assert sorted(await ask(own_database, keyless)) == [
        "consumer_reservations", "consumer_waivers", "credentials", "remembered_browsers",
    ]  # fmt: skip
