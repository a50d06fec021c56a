"""`cuota restore FILE`: restores into an empty data folder or database, all or nothing, and checks the result."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import zipfile
from pathlib import Path
from typing import IO, Any

import asyncpg

from cuota import config
from cuota.core.expected_failure import ExpectedFailure
from cuota.db import hosts
from cuota.db.backup import archive
from cuota.db.backup.archive import Manifest
from cuota.db.backup.programs import ProgramFailed, Programs, ended, programs_for
from cuota.db.migrate import OnProgress, files
from cuota.db.sandbox.forks import quoted
from cuota.db.vault import Vault, WrongKey
from cuota.db.verify.recalculate import VerifyReport, verify
from cuota.run import runtime
from cuota.run.backup import COUNTED, PROBE, feed, feed_dump

# A newer pg_dump sets a parameter that an older server does not know and a restore does not need.
_NOT_EVERYWHERE = b"SET transaction_timeout = 0;\n"
_HEAD_BYTES = 1 << 16
# Any table, ours or not, prevents a restore.
_EMPTY = """SELECT NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname !~ '^(pg_|information_schema)' AND c.relkind IN ('r', 'p', 'v', 'S'))"""
_MAY_FILL = (
    "SELECT has_schema_privilege('public', 'CREATE') AND has_database_privilege(current_database(), 'CREATE')"
)


class CannotRestore(ExpectedFailure):
    """Nothing was restored. The text says why."""


def restore(file: Path, told: OnProgress) -> tuple[Manifest, VerifyReport]:
    """Restore `file` into the database that the settings name. Raises CannotRestore, BadArchive, WrongKey, ProgramFailed."""
    with archive.opened(file) as (packed, manifest):
        _require_readable(manifest)
        place = config.place()
        if place.environment != manifest.environment:
            raise CannotRestore(
                f"{file} is a {manifest.environment} backup, and CUOTA_ENVIRONMENT is {place.environment}. Nothing was restored."
                f" To restore it, set CUOTA_ENVIRONMENT={manifest.environment}."
            )
        if place.database_url is None and (place.data_dir / "pg").exists():
            raise CannotRestore(
                f"There is already a database in {place.data_dir}. Set CUOTA_DATA_DIR to a new folder, or move the old folder away."
            )
        told(0, None, f"checking the file of {manifest.taken_at}")
        archive.require_whole(packed, manifest, file)
        _bring_key(packed, manifest, place)
        settings = config.load()
        _require_key(settings, manifest)
        try:
            with runtime.database(settings) as where:
                return manifest, asyncio.run(_fill(settings, where, packed, manifest, told))
        except (CannotRestore, ProgramFailed) as problem:
            if place.database_url is not None:
                raise
            raise CannotRestore(f"{problem} Delete {place.data_dir} before you try again.") from None


def _require_readable(manifest: Manifest) -> None:
    unknown = set(manifest.migrations) - {name for name, _ in files()}
    if unknown:
        raise CannotRestore(
            f"A newer release of Cuota ({manifest.cuota}, with {max(unknown)}) wrote this file. Restore it with that release."
        )


def _bring_key(packed: zipfile.ZipFile, manifest: Manifest, place: config.DataLocation) -> None:
    """Put the key where the sandbox looks for it, before anything creates a new key."""
    path = place.data_dir / "secret.key"
    if place.names_its_key or path.exists():
        return
    if not manifest.has_key:
        raise CannotRestore(
            "This file does not contain the secret key, which came from CUOTA_SECRET_KEY. Set CUOTA_SECRET_KEY to the same value."
        )
    place.data_dir.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(packed.read(archive.KEY))
        out.flush()
        os.fsync(out.fileno())


def _require_key(settings: config.Settings, manifest: Manifest) -> None:
    vault = Vault(settings.secret_key, settings.old_secret_keys)
    if not _opens(vault, manifest.probe):
        raise WrongKey(
            "CUOTA_SECRET_KEY is not the key with which this backup was made, so its secrets could not be decrypted."
        )
    if manifest.old_probe and not _opens(vault, manifest.old_probe):
        raise WrongKey(
            "This backup was made while CUOTA_SECRET_KEY was being replaced, and some of its secrets need the older key. Set"
            " CUOTA_SECRET_KEY_OLD to that key."
        )


def _opens(vault: Vault, probe: str) -> bool:
    try:
        return vault.decrypt(bytes.fromhex(probe), "backup") == PROBE
    except WrongKey:
        return False


async def _fill(
    settings: config.Settings,
    where: dict[str, Any],
    packed: zipfile.ZipFile,
    manifest: Manifest,
    told: OnProgress,
) -> VerifyReport:
    owner = runtime.owner(settings, where)
    connection = await hosts.connect(**owner)
    try:
        if not await connection.fetchval(_MAY_FILL):
            raise CannotRestore(
                "Only the owner of the database can restore a backup. Set CUOTA_DATABASE_OWNER_URL; see docs/running.md, Database."
            )
        if not await connection.fetchval(_EMPTY):
            raise CannotRestore(
                "The database already contains tables. Create an empty one with createdb, and set CUOTA_DATABASE_URL to its address."
            )
        await _make_roles(connection, manifest.roles)
        programs = programs_for(owner, max(connection.get_server_version().major, manifest.server_version))
        await asyncio.to_thread(_load, programs, packed, told)
        for name in COUNTED:
            count = await connection.fetchval(f"SELECT count(*) FROM {name}")
            if count != manifest.counts[name]:
                raise CannotRestore(
                    f"The table {name} has {count} rows, but the backup had {manifest.counts[name]}. Do not use this database."
                )
        # Update the statistics, so that queries are planned for the restored data and not for an empty database.
        await connection.execute("ANALYZE")
    finally:
        await connection.close()
    await runtime.migrated(settings, where, told)
    async with runtime.opened(settings, where, pool_size=2, decides=False) as context:
        return await verify(context.pool, lambda done, total, _: told(done, total, "orders verified"))


async def _make_roles(connection: asyncpg.Connection, roles: list[str]) -> None:
    """Create the roles, and make this user a member of each. Roles belong to the server, not to the database."""
    try:
        for role in roles:
            if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", role):
                await connection.execute(f"CREATE ROLE {quoted(role)} NOLOGIN")
            if not await connection.fetchval("SELECT pg_has_role($1, 'MEMBER')", role):
                await connection.execute(f"GRANT {quoted(role)} TO CURRENT_USER")
    except asyncpg.PostgresError as problem:
        raise CannotRestore(
            f"The database user cannot create the roles {', '.join(roles)}: {problem}. Create them first; see docs/running.md."
        ) from None


def _load(programs: Programs, packed: zipfile.ZipFile, told: OnProgress) -> None:
    """Load the dump: pg_restore turns it into SQL, psql runs the SQL in one transaction."""
    quiet = ("--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", "--output=/dev/null")
    sql = programs.start(
        programs.command("psql", *quiet, f"--dbname={programs.address}"),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    text = programs.start(
        programs.command("pg_restore", "--no-owner", "--file=-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert text.stdin is not None
    assert text.stdout is not None
    assert sql.stdin is not None
    feeder = threading.Thread(
        target=feed_dump, args=(packed, text.stdin, told, "writing the database"), daemon=True
    )
    feeder.start()
    try:
        feed(_Plain(text.stdout), sql.stdin)
        ended(sql, "psql")
        feeder.join()
        ended(text, "pg_restore")
    finally:
        for process in (sql, text):
            if process.poll() is None:
                process.kill()
                process.wait()
        feeder.join()


class _Plain:
    """Yields the SQL without the one line that not every server accepts."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._head: bytes | None = source.read(_HEAD_BYTES).replace(_NOT_EVERYWHERE, b"", 1)

    def read(self, size: int) -> bytes:
        """Return the next bytes, or none at the end."""
        head, self._head = self._head, None
        return head or self._source.read(size)
