"""A disk that is small and can be filled, and one whose fsync fails; both only where the system lets us."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from support.faults.books import AWAY
from support.faults.served import Service, children, free_port, until
from support.folders import new_folder
from support.needed import needed

DATA, LOG_AHEAD = "160m", "56m"
REFILL_SECONDS = 0.02
BLOCK = 4096
# What strace writes for a call that it made fail.
INJECTED = "(INJECTED)"


@contextlib.contextmanager
def on_small_disks() -> Iterator[Service]:
    """As `served.service`, its data folder on a small disk, and PostgreSQL's write-ahead log on another.

    What the service says is kept beside them.
    """
    base = new_folder("cuota-disk-")
    made = Service(base / "data", free_port())
    made.data.mkdir()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, base, ignore_errors=True)
        stack.enter_context(_disk(made.data, DATA, made.data.stat()))
        assert made.run("migrate").returncode == 0, made.errors()
        until(lambda: _at_rest(made))
        log, before = wal_of(made), made.data / "pg_wal"
        log.rename(before)
        log.mkdir()
        stack.enter_context(_disk(log, LOG_AHEAD, before.stat()))
        subprocess.run(["cp", "--archive", f"{before}/.", log], check=True)
        shutil.rmtree(before)
        stack.callback(until, lambda: _at_rest(made))
        stack.callback(made.stop)
        yield made


def wal_of(service: Service) -> Path:
    """The disk of the write-ahead log."""
    return service.data / "pg" / "pg_wal"


def _at_rest(service: Service) -> bool:
    return not (service.data / "pg" / "postmaster.pid").exists()


@contextlib.contextmanager
def _disk(folder: Path, size: str, like: os.stat_result) -> Iterator[None]:
    """A small disk in place of this folder, with the owner and mode of another."""
    if not shutil.which("mount"):
        pytest.skip("a full disk is not tried: there is no `mount` here (apt-get install mount)")
    options = f"size={size},mode={stat.S_IMODE(like.st_mode):o},uid={like.st_uid},gid={like.st_gid}"
    command = ["mount", "-t", "tmpfs", "-o", options, "cuota-small-disk", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a full disk is not tried: it needs the right to mount, as root has it. {done.stderr}")
    try:
        yield
    finally:
        # PostgreSQL's supervisor holds its log for a moment longer.
        until(lambda: _unmounted(folder), 60)


def _unmounted(folder: Path) -> bool:
    return subprocess.run(["umount", str(folder)], capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def full(disk: Path) -> Iterator[None]:
    """Not a block is free, and what becomes free is taken at once; until the end of this."""
    filler, over = disk / "filler", threading.Event()
    with filler.open("wb") as file:

        def keep() -> None:
            while not over.wait(REFILL_SECONDS):
                _take_all(file.fileno(), disk)

        _take_all(file.fileno(), disk)
        keeper = threading.Thread(target=keep)
        keeper.start()
        try:
            yield
        finally:
            over.set()
            keeper.join()
            filler.unlink()


def to_the_brim(file: Path) -> None:
    """The rest of a file's last block, on a full disk."""
    with file.open("ab", buffering=0) as opened, contextlib.suppress(OSError):
        while opened.write(b"\n" * BLOCK):
            pass


def _take_all(descriptor: int, disk: Path) -> None:
    """Somebody else may be faster: then there is less, which is asked for next."""
    while free := os.statvfs(disk).f_bavail * BLOCK:
        with contextlib.suppress(OSError):
            os.posix_fallocate(descriptor, os.fstat(descriptor).st_size, free)


@contextlib.contextmanager
def failing_fsync(pids: Sequence[int], notes: Path, *, followed: bool = False) -> Iterator[None]:
    """Every fsync of these processes is an input/output error; where `followed`, also of those that they start."""
    needed("strace")
    command = ["strace", "-q", "-o", str(notes), "-e", "trace=fsync,fdatasync"]
    command += ["-e", "inject=fsync,fdatasync:error=EIO", *(["-f"] if followed else [])]
    command += [part for pid in pids for part in ("-p", str(pid))]
    with (notes.with_suffix(".errors")).open("w+") as errors:
        tracer = subprocess.Popen(command, stdout=errors, stderr=errors)
        try:
            until(lambda: tracer.poll() is not None or all(map(_is_traced, pids)), 60)
            if tracer.poll() is not None and not (notes.exists() and notes.read_text()):
                errors.seek(0)
                pytest.skip(f"errors of fsync are not tried: it needs the right to trace: {errors.read()}")
            yield
        finally:
            # It lets go of whoever it still holds.
            tracer.terminate()
            tracer.wait(60)


def _is_traced(pid: int) -> bool:
    """Or gone already: an error of another of them may have ended all."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    return "TracerPid:\t0\n" not in status


def struck(notes: Path, seconds: float = 20.0) -> None:
    """Wait until a call has been made to fail."""
    until(lambda: notes.exists() and INJECTED in notes.read_text(), seconds)


def processes(service: Service, role: bytes) -> list[int]:
    """PostgreSQL's, by what their titles say."""
    found = []
    for pid in children(service.postmaster):
        with contextlib.suppress(OSError):
            found += [pid] if role in Path(f"/proc/{pid}/cmdline").read_bytes() else []
    return found


def panics(service: Service) -> int:
    """How often PostgreSQL has ended itself, by its log; what did not fit on a full disk is not in it."""
    return (service.data / "postgres.log").read_text(errors="replace").count("PANIC:  ")


def eat(where: dict[str, Any]) -> None:
    """Write to the log, beside the clients, until the server has no room for it and ends itself."""

    async def go() -> None:
        connection = await asyncpg.connect(**where)
        try:
            while True:
                await connection.execute("SELECT pg_logical_emit_message(false, 'eat', repeat('x', 200000))")
                await asyncio.sleep(0.01)
        finally:
            connection.terminate()

    with contextlib.suppress(*AWAY):
        asyncio.run(go())
