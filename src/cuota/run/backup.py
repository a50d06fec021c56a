"""`cuota backup FILE`: writes one file with everything that a new installation needs, while the service runs.

It uses pg_dump as the owner of the tables. pg_dump reads all tables as of one moment, works for the embedded database
and for an external one, and its output can be read by later versions of PostgreSQL.
"""

from __future__ import annotations

import base64
import subprocess
import zipfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import asyncpg

from cuota import config
from cuota.core.expected_failure import ExpectedFailure
from cuota.db import hosts, service_rights
from cuota.db.backup import archive
from cuota.db.backup.archive import Manifest
from cuota.db.backup.programs import Programs, ended, programs_for
from cuota.db.migrate import OnProgress
from cuota.db.pool import UnsafeDatabase
from cuota.db.vault import Vault
from cuota.flows.secret.open_vault import BOUND_TO
from cuota.run import runtime

COUNTED = ("orders", "transfers", "movements", "events")
PROBE = "the key of this backup"
# The roles with rights in the dumped schemas. PostgreSQL's own schemas are not dumped: their grants name the server's
# superuser.
_ROLES = """
WITH ours AS (SELECT oid, nspacl FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$)'),
tables AS (SELECT oid, relacl FROM pg_class WHERE relnamespace IN (SELECT oid FROM ours))
SELECT DISTINCT r.rolname::text AS name FROM (
    SELECT relacl AS acl FROM tables UNION ALL SELECT nspacl FROM ours
    UNION ALL SELECT attacl FROM pg_attribute WHERE attrelid IN (SELECT oid FROM tables)
    UNION ALL SELECT proacl FROM pg_proc WHERE pronamespace IN (SELECT oid FROM ours)
) granted CROSS JOIN LATERAL aclexplode(granted.acl) a JOIN pg_roles r ON r.oid = a.grantee
WHERE r.rolname !~ '^pg_' AND r.rolname <> current_user ORDER BY 1
"""
# Progress is reported in this unit.
MEBIBYTE = 1 << 20


class CannotBackUp(ExpectedFailure):
    """No backup was written. The text says why."""


OnBackupBegun = Callable[[config.Settings, asyncpg.Connection], Awaitable[None]]


async def backup(
    settings: config.Settings,
    where: dict[str, Any],
    file: Path,
    told: OnProgress,
    begun: OnBackupBegun | None = None,
) -> Manifest:
    """Write `file`. If this fails, delete the file and raise CannotBackUp, ProgramFailed or WrongKey.

    `begun` is called once it is known that the database can be backed up.
    """
    where = runtime.owner(settings, where)
    connection = await hosts.connect(**where)
    try:
        await _require_ours(connection)
        if begun is not None:
            await begun(settings, connection)
        vault = Vault(settings.secret_key, settings.old_secret_keys)
        await _require_key(connection, vault)
        # This transaction sees one moment of the database, and pg_dump is told to use the same snapshot.
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            snapshot = await connection.fetchval("SELECT pg_export_snapshot()")
            facts = await _facts(connection, settings, vault)
            try:
                with archive.written(file) as aside:
                    _write(aside, programs_for(where, facts["server_version"]), snapshot, facts, told)
                    return _checked(aside, programs_for(where, facts["server_version"]), told)
            except FileExistsError:
                raise CannotBackUp(
                    f"{file} exists already. Nothing was written; choose another file name."
                ) from None
            except OSError as problem:
                raise CannotBackUp(f"Cannot write {file}: {problem}.") from None
    finally:
        await connection.close()


async def _require_ours(connection: asyncpg.Connection) -> None:
    if not await connection.fetchval("SELECT to_regclass('public.installation') IS NOT NULL"):
        raise UnsafeDatabase("This database does not contain Cuota's tables yet. Start the service once.")
    if not await service_rights.may_migrate(connection):
        raise CannotBackUp(
            "Only the owner of the tables can make a backup. Set CUOTA_DATABASE_OWNER_URL; see docs/running.md, Database."
        )
    if await connection.fetchval("SELECT to_regclass('pg_dist_partition') IS NOT NULL"):
        raise CannotBackUp(
            "This command cannot back up a Citus cluster. Back up each node with PostgreSQL's own tools; see docs/scaling.md."
        )
    # No timeout: nothing waits for this statement, and it may take long.
    for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
        await connection.execute(f"SET {name} = 0")


async def _require_key(connection: asyncpg.Connection, vault: Vault) -> None:
    """Check that the secret key belongs to this database, because the key may go into the file. Raises WrongKey."""
    row = await connection.fetchrow(
        "SELECT key_id, private_key, active_at FROM signing_keys UNION ALL"
        " SELECT key_id, private_key, active_at FROM signing_keys_p256 ORDER BY active_at DESC LIMIT 1"
    )
    if row is not None:
        vault.decrypt(row["private_key"], f"signing-key:{row['key_id']}")


async def _facts(connection: asyncpg.Connection, settings: config.Settings, vault: Vault) -> dict[str, Any]:
    migrations = await connection.fetch("SELECT name FROM migrations ORDER BY name")
    return {
        "format": archive.FORMAT,
        "cuota": version("cuota"),
        "environment": await connection.fetchval("SELECT environment FROM installation"),
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "server_version": connection.get_server_version().major,
        "migrations": [row["name"] for row in migrations],
        "roles": [row["name"] for row in await connection.fetch(_ROLES)],
        # The names in this SQL are our own, so they need no quoting.
        "counts": {name: await connection.fetchval(f"SELECT count(*) FROM {name}") for name in COUNTED},
        "probe": vault.encrypt(PROBE, "backup").hex(),
        "old_probe": await _old_probe(connection, vault, settings),
        "key": None if config.place().names_its_key else base64.b64encode(settings.secret_key) + b"\n",
    }


async def _old_probe(connection: asyncpg.Connection, vault: Vault, settings: config.Settings) -> str:
    """Return the probe of the key that the hash key still needs, or an empty text if that is the current key. Raises WrongKey."""
    row = await connection.fetchrow("SELECT sealed FROM hash_key")
    needed = settings.secret_key if row is None else vault.key_of(bytes(row["sealed"]), BOUND_TO)
    return "" if needed == settings.secret_key else Vault(needed).encrypt(PROBE, "backup").hex()


def _write(aside: Path, programs: Programs, snapshot: str, facts: dict[str, Any], told: OnProgress) -> None:
    options = ("--format=custom", "--no-owner", "--no-unlogged-table-data", f"--snapshot={snapshot}")
    dump = programs.start(
        programs.command("pg_dump", *options, f"--dbname={programs.address}"), stdout=subprocess.PIPE
    )
    assert dump.stdout is not None
    key = facts.pop("key")
    note = f"copying {facts['counts']['orders']:,} orders"

    def written(size: int) -> None:
        told(size / MEBIBYTE, None, note)

    def manifest(hashes: dict[str, str]) -> Manifest:
        ended(dump, "pg_dump")
        return Manifest(**facts, has_key=key is not None, sha256=hashes)

    try:
        archive.pack(aside, dump.stdout, key, manifest, written)
    finally:
        if dump.poll() is None:
            dump.kill()
            dump.wait()


def _checked(aside: Path, programs: Programs, told: OnProgress) -> Manifest:
    """Read the file again as a restore would, so that a damaged file is never taken for a backup."""
    with archive.opened(aside) as (packed, manifest):
        archive.require_whole(packed, manifest, aside)
        listing = programs.start(
            programs.command("pg_restore", "--list"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert listing.stdin is not None
        feed_dump(packed, listing.stdin, told, "checking the file")
        ended(listing, "pg_restore")
    return manifest


def feed_dump(packed: zipfile.ZipFile, sink: Any, told: OnProgress, note: str) -> None:
    """Copy the dump of a backup into `sink`, and report how many MiB are read, and how many there are."""
    total, read = packed.getinfo(archive.DUMP).file_size / MEBIBYTE, 0

    def count(chunk: bytes) -> None:
        nonlocal read
        read += len(chunk)
        told(read / MEBIBYTE, total, note)

    feed(packed.open(archive.DUMP), sink, count)


def feed(source: Any, sink: Any, copied: Callable[[bytes], None] = lambda _: None) -> None:
    """Copy until the source ends or the reader has read enough. `copied` is called with each piece."""
    try:
        while chunk := source.read(archive.CHUNK):
            sink.write(chunk)
            copied(chunk)
        sink.close()
    except BrokenPipeError:
        pass  # the reader ended; the caller checks its exit code
