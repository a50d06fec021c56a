"""The folder in which the workers of one `cuota serve` count, so that any of them can answer for all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cuota.core.expected_failure import ExpectedFailure

# On Linux, files in this folder are in memory, so a full disk does not affect them.
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder that only this user can enter
# A container may have little shared memory. A worker needs less than 2 MB.
LEAST_FREE_BYTES = 32 * 1024 * 1024
# A service that starts at this moment may not have locked its folder yet.
YOUNG_SECONDS = 60.0
PREFIX = "cuota-metrics-"


class NoMetricsFolder(ExpectedFailure):
    """The folder cannot be created. The text says what to do."""


@contextlib.contextmanager
def opened_metrics_folder() -> Iterator[None]:
    """Inside the block, keep the folder, and name it in the variable from which the workers know it."""
    folder = _in_memory() or _temporary()
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    held = os.open(folder, os.O_RDONLY)
    try:
        # The lock ends with this process, however it ends.
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _in_memory() -> str | None:
    try:
        _remove_left_behind()
        if shutil.disk_usage(SHARED_MEMORY).free >= LEAST_FREE_BYTES:
            return tempfile.mkdtemp(prefix=PREFIX, dir=SHARED_MEMORY)
    except OSError:
        pass  # this system has no such folder, or the service may not write there
    return None


def _remove_left_behind() -> None:
    """Remove the folders of killed services, which would stay in memory. Such a folder is not locked."""
    for folder in SHARED_MEMORY.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # a folder of another user, or a running service's
            if time.time() - folder.stat().st_mtime < YOUNG_SECONDS:
                continue
            found = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(found)


def _temporary() -> str:
    try:
        return tempfile.mkdtemp(prefix=PREFIX)
    except OSError as problem:
        raise NoMetricsFolder(
            f"Cannot create a folder for the metrics in {SHARED_MEMORY} or in the folder for temporary files "
            f"({problem.strerror}). Free some space there, or set TMPDIR to a folder in which the service can write."
        ) from None
