"""Reads the memory of running processes, like an attacker who took over the machine."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

# A line's fields: start, end, private or shared, and what is mapped.
_REGION = re.compile(r"([0-9a-f]+)-([0-9a-f]+) rw.([ps]) (.*)", re.ASCII)
PIECE = 8 * 1024 * 1024
# Pieces overlap, so that a text on the border between two pieces is found.
OVERLAP = 256


def family(pid: int) -> list[psutil.Process]:
    """Return a process with all its descendants."""
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def memory(process: psutil.Process, seen: set[str]) -> Iterator[bytes]:
    """Yield everything that a process can write to, in pieces. Skips the test if the machine does not allow it.

    `seen` are the shared regions that were read already, in this process or another one: all processes of PostgreSQL share
    its buffers.
    """
    proc = Path(f"/proc/{process.pid}")
    try:
        regions = _REGION.findall((proc / "maps").read_text())
        opened = (proc / "mem").open("rb", buffering=0)
    except PermissionError:
        pytest.skip("this machine does not let a process read the memory of another one (/proc/PID/mem)")
    with opened:
        for start, end, kind, mapped in regions:
            if kind == "s" and mapped in seen:
                continue
            seen.add(mapped)
            place, last = int(start, 16), int(end, 16)
            while place < last:
                try:
                    opened.seek(place)
                    yield opened.read(min(PIECE + OVERLAP, last - place))
                except OSError:
                    break  # the region no longer exists, or no process can read it
                place += PIECE


def holders(processes: list[psutil.Process], texts: dict[str, bytes]) -> dict[str, set[str]]:
    """Return, for each text's name, the processes whose memory contains the text."""
    found: dict[str, set[str]] = {name: set() for name in texts}
    seen: set[str] = set()
    for process in processes:
        # A short-lived process of PostgreSQL, such as one of autovacuum, may have ended since the list was made.
        with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            title = " ".join(process.cmdline())[:80]
            for piece in memory(process, seen):
                for name, text in texts.items():
                    if text in piece:
                        found[name].add(f"{process.pid} {title}")
    return found
