"""The file in which a process counts, so that any process of the service can answer for all of them.

prometheus_client makes a file longer without allocating space, and writes through a mapping. If the disk is full, such a write ends
the process with the signal SIGBUS. Here the space is allocated before it is mapped, and an error leaves the process alive.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict

FIRST_BYTES = 64 * 1024
# What an entry has at most besides its key: the key's length, its padding, the value and the time.
MOST_BESIDE_KEY = 4 + 8 + 16
# The file begins with the number of bytes in use, and padding.
HEAD_BYTES = 8
log = logging.getLogger("cuota.metrics")


class SharedCounts(MmapedDict):
    """The counts of one process by series, in a file; or in the process's own memory if the file cannot become longer.

    The other processes then still read what the file had before.
    """

    def __init__(self, filename: str) -> None:
        try:
            _begin(Path(filename))
            super().__init__(filename)  # type: ignore[no-untyped-call]
        except OSError as problem:
            self._f = None  # type: ignore[assignment]
            self._fname = filename
            self._positions: dict[str, int] = {}
            self._used = HEAD_BYTES
            self._capacity = FIRST_BYTES
            self._m = mmap.mmap(-1, FIRST_BYTES)
            self._m[:4] = struct.pack("i", HEAD_BYTES)
            self._warn(problem)

    def _init_value(self, key: str) -> None:
        if self._used + len(key.encode()) + MOST_BESIDE_KEY > self._capacity:
            self._enlarge()
        super()._init_value(key)  # type: ignore[no-untyped-call]

    def _enlarge(self) -> None:
        """Double the capacity. The base class then never does this itself."""
        capacity = self._capacity * 2
        try:
            if self._f is not None:
                allocate(self._f.fileno(), capacity)
                self._m = mmap.mmap(self._f.fileno(), capacity)
        except OSError as problem:
            self._f.close()
            self._f = None  # type: ignore[assignment]
            self._warn(problem)
        if self._f is None:
            counted = self._m[: self._used]
            self._m = mmap.mmap(-1, capacity)
            self._m[: self._used] = counted
        self._capacity = capacity

    def _warn(self, problem: OSError) -> None:
        log.warning(
            "metrics are counted by this process alone; free some space and restart the service",
            extra={"facts": {"file": self._fname, "problem": problem.strerror}},
        )


def allocate(descriptor: int, size: int) -> None:
    """Append zeros to a file up to this size. Raises OSError if that fails, and leaves the file as it was."""
    before = os.fstat(descriptor).st_size
    missing = memoryview(bytes(max(0, size - before)))
    try:
        while missing:
            missing = missing[os.write(descriptor, missing) :]
    except OSError:
        os.truncate(descriptor, before)
        raise


def _begin(file: Path) -> None:
    """Allocate the beginning of a process's file. Without space, leave no file: an empty one could not be read."""
    with file.open("ab") as opened:
        try:
            allocate(opened.fileno(), FIRST_BYTES)
        except OSError:
            file.unlink()
            raise
