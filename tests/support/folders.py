"""Chooses where the databases of the tests are: in memory if there is room, otherwise on the disk.

PostgreSQL waits for the disk at each commit. On a busy machine such a wait takes 10 ms and more, and the suite
commits some hundred thousand times. A killed process loses no data in either place; only a power failure would. `make
faults` sets FAULTS_LONG and uses the disk. If TMPDIR is set, its folder is used.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from support.long_run import LONG

MEMORY = Path("/dev/shm")
# The databases of four test processes need less than half of this.
NEEDED_BYTES = 4 * 1024**3


@cache
def parent_folder() -> Path:
    """Return /dev/shm if the tests may use it and it has room, otherwise the usual folder for temporary files."""
    chosen = LONG or "TMPDIR" in os.environ
    if not chosen and os.access(MEMORY, os.W_OK) and min(_free_bytes()) >= NEEDED_BYTES:
        return MEMORY
    return Path(tempfile.gettempdir())


def _free_bytes() -> tuple[int, int]:
    """Return the free space of the memory file system, and how much memory the machine can still provide."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0, 0
    facts = dict(line.split(":", 1) for line in lines)
    return shutil.disk_usage(MEMORY).free, int(facts.get("MemAvailable", "0 kB").split()[0]) * 1024


def new_folder(prefix: str) -> Path:
    """Make a folder that the unprivileged user of postgres may enter. Pytest's own folders have mode 0700."""
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent_folder()))
    path.chmod(0o711)
    return path
