"""Copies (forks) of the whole sandbox, each in its own schema. The catalog lists the tables, so new tables are included."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cuota.db.pool import Connection
from cuota.db.session import Session

SCHEMAS = (
    "public",
    "card_simulator",
    "message_simulator",
    "issuing_simulator",
    "card_processor",
    "bank_simulator",
    "bank_files",
)
# Tables that a rewind does not change: the installation's identity, its keys (so that tokens stay valid), rate limits on the
# real clock, what the processes reported about themselves, the forks, and the texts of policies, because the policy in force was
# stored when the service started.
KEPT = (
    "public.migrations", "public.installation", "public.last_served", "public.signing_keys", "public.signing_keys_p256",
    "public.token_failures", "public.hash_key", "public.service_role", "public.sandbox_clock", "public.forks", "public.policies",
    "public.process_minutes",
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
# A sequence belongs to a column if the column owns it or is an identity column.
_SEQUENCES = """
SELECT n.nspname AS schema, s.relname AS name FROM pg_class s JOIN pg_namespace n ON n.oid = s.relnamespace
WHERE s.relkind = 'S' AND n.nspname = ANY ($1::text[]) ORDER BY 1, 2
"""
_DISTRIBUTED = "SELECT to_regclass('pg_dist_partition') IS NOT NULL"
_FORK = "INSERT INTO forks (name, service_time, migrations) VALUES ($1, $2, $3)"
_FORKS = "SELECT name, taken_at, service_time, migrations FROM forks ORDER BY taken_at, name"
_MIGRATIONS = "SELECT array_agg(name ORDER BY name) FROM migrations"


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork: when it was made in real time, and the time on the service's clock at that moment."""

    name: str
    taken_at: datetime
    service_time: datetime
    migrations: list[str]


@dataclass(frozen=True, slots=True)
class ForkedTable:
    """A table's qualified SQL name, and the name of its copy in a fork's schema."""

    name: str
    copy: str
    columns: str


def quoted(*names: str) -> str:
    """Quote an identifier, or a schema and an identifier."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def schema_of(name: str) -> str:
    """Return the name of a fork's schema."""
    return f"fork_{name}"


async def read_all(session: Session) -> list[Fork]:
    """Return every fork, oldest first."""
    return [Fork(**row) for row in await session.fetch(_FORKS)]


async def distributed(connection: Connection) -> bool:
    """Return whether this database is on a Citus cluster."""
    found: bool = await connection.fetchval(_DISTRIBUTED)
    return found


async def migrations(connection: Connection) -> list[str]:
    """Return the names of the migrations that were applied to this database."""
    names: list[str] = await connection.fetchval(_MIGRATIONS)
    return names


async def tables(connection: Connection) -> list[ForkedTable]:
    """Return the tables to copy. A table comes after all tables that its foreign keys refer to."""
    left = {row["oid"]: row for row in await connection.fetch(_TABLES, list(SCHEMAS), list(KEPT))}
    ordered: list[ForkedTable] = []
    while left:
        free = [oid for oid, row in left.items() if not set(row["parents"]) & set(left)]
        # Tables whose foreign keys form a cycle could not be filled in any order. There are no such tables.
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
    """Copy all tables into a fork's schema and return the number of rows. Requires the owner and a transaction."""
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
    """Replace the current rows by a fork's rows and return their number. Requires the owner and a transaction."""
    schema, rows = quoted(schema_of(name)), 0
    all_tables = await tables(connection)
    names = ", ".join(table.name for table in all_tables)
    # This lock makes all readers and writers wait until the transaction ends, so that nobody sees a partial copy.
    await connection.execute(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
    for table in all_tables:
        # Triggers enforce append-only tables and totals that only rise. A rewind must break these rules, so they are off here.
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
        # Unlike setval, this is rolled back with the transaction.
        await connection.execute(
            f"ALTER SEQUENCE {quoted(row['schema'], row['name'])} RESTART WITH {following}"
        )
    return rows


async def forget(connection: Connection, name: str) -> None:
    """Delete a fork."""
    await connection.execute(f"DROP SCHEMA IF EXISTS {quoted(schema_of(name))} CASCADE")
    await connection.execute("DELETE FROM forks WHERE name = $1", name)
