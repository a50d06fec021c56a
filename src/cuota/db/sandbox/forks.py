"""Copies of the whole sandbox beside it, a schema each. The tables come from the catalog: later ones are in too."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cuota.db.pool import Connection
from cuota.db.session import Session

SCHEMAS = ("public", "card_simulator", "message_simulator", "issuing_simulator")
# What a sandbox that goes back keeps: its identity, its keys (tokens stay good), the real clock's limits, its forks,
# and the words of every policy, since the one in force was stored when the service started.
KEPT = (
    "public.migrations", "public.installation", "public.last_served", "public.signing_keys", "public.token_failures",
    "public.hash_key", "public.service_role", "public.sandbox_clock", "public.forks", "public.policies",
)  # fmt: skip

_TABLES = """
SELECT n.nspname AS schema, c.relname AS name,
    ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
        AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum) AS columns,
    ARRAY(SELECT DISTINCT k.confrelid::regclass::oid FROM pg_constraint k
        WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.confrelid <> c.oid) AS parents,
    c.oid AS oid
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY ($1::text[]) AND c.relkind = 'r' AND NOT n.nspname || '.' || c.relname = ANY ($2::text[])
ORDER BY n.nspname, c.relname
"""
# A sequence belongs to the column that it numbers: owned by it, or its identity.
_SEQUENCES = """
SELECT n.nspname AS schema, s.relname AS name FROM pg_class s JOIN pg_namespace n ON n.oid = s.relnamespace
WHERE s.relkind = 'S' AND n.nspname = ANY ($1::text[]) ORDER BY 1, 2
"""
_FORK = "INSERT INTO forks (name, service_time, migrations) VALUES ($1, $2, $3)"
_FORKS = "SELECT name, taken_at, service_time, migrations FROM forks ORDER BY taken_at, name"
_MIGRATIONS = "SELECT array_agg(name ORDER BY name) FROM migrations"


@dataclass(frozen=True, slots=True)
class Fork:
    """A copy: when it was taken (real time), and what the service's clock said then."""

    name: str
    taken_at: datetime
    service_time: datetime
    migrations: list[str]


@dataclass(frozen=True, slots=True)
class ForkedTable:
    """A table as SQL names it, and its copy's name within a fork's schema."""

    name: str
    copy: str
    columns: str


def quoted(*names: str) -> str:
    """An identifier, with its schema if there are two."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def schema_of(name: str) -> str:
    """Where a fork's tables stand."""
    return f"fork_{name}"


async def read_all(session: Session) -> list[Fork]:
    """Every fork, the oldest first."""
    return [Fork(**row) for row in await session.fetch(_FORKS)]


async def migrations(connection: Connection) -> list[str]:
    """What this database was made by."""
    names: list[str] = await connection.fetchval(_MIGRATIONS)
    return names


async def tables(connection: Connection) -> list[ForkedTable]:
    """Everything that is copied, what is referred to before what refers to it."""
    left = {row["oid"]: row for row in await connection.fetch(_TABLES, list(SCHEMAS), list(KEPT))}
    ordered: list[ForkedTable] = []
    while left:
        free = [oid for oid, row in left.items() if not set(row["parents"]) & set(left)]
        # Tables that refer to each other in a circle can be filled in no order; there is none such.
        assert free, "foreign keys in a circle"
        for oid in free:
            row = left.pop(oid)
            columns = ", ".join(quoted(column) for column in row["columns"])
            ordered.append(
                ForkedTable(
                    quoted(row["schema"], row["name"]), quoted(f"{row['schema']}.{row['name']}"), columns
                )
            )
    return ordered


async def take(connection: Connection, name: str, service_time: datetime) -> int:
    """Copy everything aside, as the database's owner inside a transaction; answers how many rows."""
    schema, rows = quoted(schema_of(name)), 0
    await connection.execute(f"CREATE SCHEMA {schema}")
    for table in await tables(connection):
        tag = await connection.execute(
            f"CREATE TABLE {schema}.{table.copy} AS SELECT {table.columns} FROM {table.name}"
        )
        rows += int(tag.split()[-1])
    for row in await connection.fetch(_SEQUENCES, list(SCHEMAS)):
        stands = await connection.fetchrow(
            f"SELECT last_value, is_called FROM {quoted(row['schema'], row['name'])}"
        )
        copy = quoted(f"{row['schema']}.{row['name']}")
        await connection.execute(
            f"CREATE TABLE {schema}.{copy} AS SELECT {int(stands['last_value'])}::bigint + {int(stands['is_called'])} AS next"
        )
    await connection.execute(_FORK, name, service_time, await migrations(connection))
    return rows


async def go_back(connection: Connection, name: str) -> int:
    """Put a fork's rows in place of what is there, as the owner inside a transaction; answers how many rows."""
    schema, rows = quoted(schema_of(name)), 0
    all_tables = await tables(connection)
    names = ", ".join(table.name for table in all_tables)
    # Whoever reads or writes waits here until all is done, so that nobody sees a half.
    await connection.execute(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
    for table in all_tables:
        # Append-only tables, totals that only rise: true of what happens, and this undoes what happened.
        await connection.execute(f"ALTER TABLE {table.name} DISABLE TRIGGER USER")
    await connection.execute(f"TRUNCATE {names}")
    for table in all_tables:
        tag = await connection.execute(
            f"INSERT INTO {table.name} ({table.columns}) OVERRIDING SYSTEM VALUE"
            f" SELECT {table.columns} FROM {schema}.{table.copy}"
        )
        rows += int(tag.split()[-1])
    for table in all_tables:
        await connection.execute(f"ALTER TABLE {table.name} ENABLE TRIGGER USER")
    for row in await connection.fetch(_SEQUENCES, list(SCHEMAS)):
        copy = quoted(f"{row['schema']}.{row['name']}")
        following = int(await connection.fetchval(f"SELECT next FROM {schema}.{copy}"))
        # Unlike setval, this is undone with the transaction.
        await connection.execute(
            f"ALTER SEQUENCE {quoted(row['schema'], row['name'])} RESTART WITH {following}"
        )
    return rows


async def forget(connection: Connection, name: str) -> None:
    """Drop a fork."""
    await connection.execute(f"DROP SCHEMA IF EXISTS {quoted(schema_of(name))} CASCADE")
    await connection.execute("DELETE FROM forks WHERE name = $1", name)
