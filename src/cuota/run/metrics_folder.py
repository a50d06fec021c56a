"""The folder in which the workers of one `cuota serve` count, so that any of them can answer for all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cuota.core.expected_failure import ExpectedFailure

# On Linux, files in this folder are in memory, so a full disk does not affect them.
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a folder that only this user can enter
# A container may have little shared memory. A worker needs less than 2 MB.
LEAST_FREE_BYTES = 32 * 1024 * 1024
PREFIX = "cuota-metrics-"


class NoMetricsFolder(ExpectedFailure):
    """The folder cannot be created. The text says what to do."""


@contextlib.contextmanager
def opened_metrics_folder() -> Iterator[None]:
    """Inside the block, keep the folder, and name it in the variable from which the workers know it."""
    folder = _in_memory() or _temporary()
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_memory() -> str | None:
    try:
        if shutil.disk_usage(SHARED_MEMORY).free >= LEAST_FREE_BYTES:
            return tempfile.mkdtemp(prefix=PREFIX, dir=SHARED_MEMORY)
    except OSError:
        pass  # this system has no such folder, or the service may not write there
    return None


def _temporary() -> str:
    try:
        return tempfile.mkdtemp(prefix=PREFIX)
    except OSError as problem:
        raise NoMetricsFolder(
            f"Cannot create a folder for the metrics in {SHARED_MEMORY} or in the folder for temporary files "
            f"({problem.strerror}). Free some space there, or set TMPDIR to a folder in which the service can write."
        ) from None
