"""A small disk that can be filled, and a disk whose fsync fails. Both work only if the system allows them."""

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
from support.faults.served import Service, children, until
from support.folders import new_folder
from support.needed import needed
from support.ports import free_port

# The write-ahead log has 16 MB segments, and a PostgreSQL that stopped on a full disk needs room for a new segment to start again. So this
# disk is much larger than the log that the tests write. On a disk of 56 MB, three segments left no room, and PostgreSQL never came back.
DATA, LOG_AHEAD = "160m", "256m"
REFILL_SECONDS = 0.02
BLOCK = 4096
# The text that strace prints for a call that it made fail.
INJECTED = "(INJECTED)"


@contextlib.contextmanager
def on_small_disks() -> Iterator[Service]:
    """Start a service as `served.service` does, with its data folder on a small disk, and the write-ahead log on another.

    The output of the service is stored beside them.
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
    """Return the disk of the write-ahead log."""
    return service.data / "pg" / "pg_wal"


def _at_rest(service: Service) -> bool:
    return not (service.data / "pg" / "postmaster.pid").exists()


@contextlib.contextmanager
def _disk(folder: Path, size: str, like: os.stat_result) -> Iterator[None]:
    """Mount a small disk in place of this folder, with the owner and mode of another folder."""
    if not shutil.which("mount"):
        pytest.skip("a full disk is not tested: there is no `mount` here (apt-get install mount)")
    options = f"size={size},mode={stat.S_IMODE(like.st_mode):o},uid={like.st_uid},gid={like.st_gid}"
    command = ["mount", "-t", "tmpfs", "-o", options, "cuota-small-disk", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(
            f"a full disk is not tested: that needs the right to mount, which root has. {done.stderr}"
        )
    try:
        yield
    finally:
        # PostgreSQL's supervisor keeps its log open for a moment longer.
        until(lambda: _unmounted(folder), 60)


def _unmounted(folder: Path) -> bool:
    return subprocess.run(["umount", str(folder)], capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def full(disk: Path) -> Iterator[None]:
    """Fill the disk to the last block, and take every block that becomes free, until the end of the block of code."""
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
    """Fill the rest of a file's last block, on a full disk."""
    with file.open("ab", buffering=0) as opened, contextlib.suppress(OSError):
        while opened.write(b"\n" * BLOCK):
            pass


def _take_all(descriptor: int, disk: Path) -> None:
    """Take free blocks. Another process may take some of them first, so each attempt asks for less space."""
    while free := os.statvfs(disk).f_bavail * BLOCK:
        with contextlib.suppress(OSError):
            os.posix_fallocate(descriptor, os.fstat(descriptor).st_size, free)


@contextlib.contextmanager
def failing_fsync(pids: Sequence[int], notes: Path, *, followed: bool = False) -> Iterator[None]:
    """Make every fsync of these processes fail with an input/output error; with `followed`, also in their children."""
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
                pytest.skip(f"fsync errors are not tested: that needs the right to trace: {errors.read()}")
            yield
        finally:
            # The tracer releases every process that it still traces.
            tracer.terminate()
            tracer.wait(60)


def _is_traced(pid: int) -> bool:
    """Return whether a process is traced, or has ended. An error of one traced process may end all of them."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    return "TracerPid:\t0\n" not in status


def struck(notes: Path, seconds: float = 20.0) -> None:
    """Wait until a call has failed."""
    until(lambda: notes.exists() and INJECTED in notes.read_text(), seconds)


def processes(service: Service, role: bytes) -> list[int]:
    """Return PostgreSQL's processes, by their titles."""
    found = []
    for pid in children(service.postmaster):
        with contextlib.suppress(OSError):
            found += [pid] if role in Path(f"/proc/{pid}/cmdline").read_bytes() else []
    return found


def panics(service: Service) -> int:
    """Return how often PostgreSQL has shut itself down, by its log. On a full disk, some log lines may be missing."""
    return (service.data / "postgres.log").read_text(errors="replace").count("PANIC:  ")


def eat(where: dict[str, Any]) -> None:
    """Write to the log, beside the clients, until the server has no room for it and shuts itself down."""

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
