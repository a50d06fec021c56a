"""Helpers for the tests of the embedded PostgreSQL: its folders, its processes, and queries."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import asyncpg

from cuota.db.embedded.server import Embedded
from support.folders import new_folder

User = subprocess.Popen[str]
PROGRAM = """
import sys
from pathlib import Path
from cuota.db.embedded.server import open_embedded
with open_embedded(Path(sys.argv[1])):
    print((Path(sys.argv[1]) / "pg" / "postmaster.pid").read_text().split()[0], flush=True)
    sys.stdin.read()
"""


def until(true: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait for a condition, and return whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def number(file: Path) -> int:
    """Return the process id on a file's first line, or 0 if there is none."""
    try:
        return int(file.read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return 0


def postmaster(data: Path) -> int:
    return number(data / "pg" / "postmaster.pid")


def supervisor(data: Path) -> int:
    return number(data / "supervisor.lock")


def lives(pid: int) -> bool:
    """True if a process runs. A zombie does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def free(lock: Path) -> bool:
    with lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def ended(data: Path) -> bool:
    return not (data / "pg" / "postmaster.pid").exists() and free(data / "supervisor.lock")


@contextmanager
def data_folder() -> Iterator[Path]:
    """Return the path of a data folder that does not exist yet. At the end, its processes and files are removed."""
    # Do not use pytest's own folder: it is private to root, and postgres runs as another user.
    base = new_folder("cuota-test-")
    try:
        yield base / "data"
    finally:
        for lock in base.rglob("supervisor.lock"):
            if not free(lock):
                os.kill(number(lock), signal.SIGTERM)
                assert until(partial(free, lock))
        shutil.rmtree(base)


@contextmanager
def users(data: Path) -> Iterator[Callable[[], User]]:
    """Starts processes that use the database until they are killed."""
    started: list[User] = []

    def start() -> User:
        command = [sys.executable, "-c", PROGRAM, str(data)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.communicate()


def told(process: User) -> int:
    """Return the process id of the postmaster that a user process reported."""
    assert process.stdout
    return int(process.stdout.readline())


async def ask(embedded: Embedded, statement: str) -> object:
    connection = await asyncpg.connect(**embedded.dsn_kwargs)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()
