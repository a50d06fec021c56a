"""Finds and starts PostgreSQL's programs for backups. Passwords are passed without appearing on the command line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cuota.core.expected_failure import ExpectedFailure
from cuota.db.embedded.programs import binaries


class ProgramFailed(ExpectedFailure):
    """A PostgreSQL program failed. The text contains the program's error message."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs, and the environment variables for one database. `address` goes on the command line."""

    folder: Path
    environment: Mapping[str, str]
    address: str

    def command(self, name: str, *arguments: str) -> list[str]:
        """Return the command line of one program."""
        return [str(self.folder / name), *arguments]

    def start(self, command: Sequence[str], **streams: Any) -> subprocess.Popen[bytes]:
        """Start a program. `ended` reads its standard error."""
        return subprocess.Popen(  # noqa: S603 - our own command
            command, env=dict(self.environment), stderr=subprocess.PIPE, **streams
        )


def programs_for(where: Mapping[str, Any], server_version: int) -> Programs:
    """Return the programs for the database with the connection arguments `where`. `server_version` is the server's major version.

    The embedded database uses the wheel's programs. For another database, the system's programs are preferred, because the wheel's
    do not support TLS. The programs must not be older than the server.
    """
    if "dsn" not in where:
        address = f"host={_quoted(where['host'])} port={where['port']} user={where['user']} dbname={where['database']}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return Programs(binaries(), clean, address)
    parts = urlsplit(str(where["dsn"]))
    environment = dict(os.environ)
    who, at, hosts = parts.netloc.rpartition("@")
    user, colon, password = who.partition(":")
    if colon:
        environment["PGPASSWORD"] = unquote(password)
    if "," in hosts:
        environment.setdefault("PGTARGETSESSIONATTRS", "read-write")
    address = parts._replace(scheme="postgresql", netloc=f"{user}{at}{hosts}").geturl()
    return Programs(_newest(server_version), environment, address)


def _quoted(path: str) -> str:
    return "'" + path.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _newest(server_version: int) -> Path:
    found = shutil.which("pg_dump")
    if found and shutil.which("psql") and shutil.which("pg_restore") and version_of(found) >= server_version:
        return Path(found).parent
    return binaries()


def version_of(program: str) -> int:
    """Return a program's major version, or 0 if it is unknown."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    number = re.search(r"\) (\d+)", said)
    return int(number[1]) if number else 0


def ended(process: subprocess.Popen[bytes], what: str) -> None:
    """Wait until a program has ended. If it failed, raises ProgramFailed with the last lines that it printed."""
    if process.stdin is not None and process.stdin.closed:
        process.stdin = None  # communicate would flush it
    _, said = process.communicate()
    if process.returncode:
        words = said.decode(errors="replace").strip().splitlines()[-5:]
        raise ProgramFailed(f"{what} failed: {' '.join(words) or f'exit code {process.returncode}'}")
