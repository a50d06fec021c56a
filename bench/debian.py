"""Starts Debian's PostgreSQL in a folder for a while, with the extensions that analyze its own statements."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from bench.service import BenchService, free_port

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "shared_preload_libraries": "pg_stat_statements,auto_explain",
    "pg_stat_statements.track": "all",
    "logging_collector": "on",
    "log_destination": "jsonlog",
    "log_directory": "log",
    "log_filename": "server.log",
}


@dataclass(frozen=True)
class Elsewhere(BenchService):
    """A service that uses a PostgreSQL other than the embedded one. `where` has the arguments of asyncpg.connect."""

    where: dict[str, Any]

    @property
    def settings(self) -> dict[str, str]:
        given = self.where
        url = f"postgresql://{given['user']}@{given['host']}:{given['port']}/{given['database']}"
        return {**super().settings, "CUOTA_DATABASE_URL": url}


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[dict[str, Any]]:
    """Start PostgreSQL, and stop it at the end of the block."""
    if not (PROGRAMS / "postgres").exists():
        raise SystemExit("Needs Debian's PostgreSQL: apt-get install postgresql-15")
    data, port = folder / "debian", free_port()
    who: list[str] = []
    if os.geteuid() == 0:
        data.mkdir()
        os.chown(data, pwd.getpwnam("postgres").pw_uid, -1)
        who = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"]
    making = [
        str(PROGRAMS / "initdb"),
        "-k",
        "-D",
        str(data),
        "-U",
        "cuota",
        "--auth=trust",
        "--locale=C.UTF-8",
    ]
    subprocess.run([*who, *making], check=True, stdout=subprocess.DEVNULL)
    options = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
    command = [*who, str(PROGRAMS / "postgres"), "-D", str(data), "-p", str(port), "-k", "", *options]
    where = {"host": "127.0.0.1", "port": port, "user": "cuota", "database": "postgres"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait(where)
            asyncio.run(ask(where, "CREATE EXTENSION pg_stat_statements"))
            yield where
        finally:
            server.terminate()
            server.wait(60)


async def ask(where: dict[str, Any], sql: str) -> list[asyncpg.Record]:
    """Run one statement as the owner."""
    connection = await asyncpg.connect(**where)
    try:
        rows: list[asyncpg.Record] = await connection.fetch(sql)
        return rows
    finally:
        await connection.close()


def _wait(where: dict[str, Any]) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            asyncio.run(ask(where, "SELECT 1"))
        except (OSError, asyncpg.PostgresError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return
