"""Sorts the test files for several test processes: the longest first, and the files that mostly wait among the others.

Each process takes the next file when it has finished one. A long file that comes last would run while the other processes have
nothing to do. If all processes ran files that wait, the cores would have nothing to do. The order of the other files, and of the
tests in a file, does not change.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import chain
from pathlib import Path

TESTS = Path(__file__).parents[1]
# These tests kill processes, and wait until the processes are replaced and until leases end.
WAITING = "faults"
# One such file follows after this many others. So about two of four test processes wait, and the last of these files begins before
# the short files.
OTHERS = 5
# Files of more than about 20 seconds on two cores, then folders whose files take more than about 5 seconds.
LONGEST = (
    "web/api/test_schemathesis.py",
    "commands/test_approvals.py",
    "demo/test_shop_is_told.py",
    "hostile/test_mutated.py",
    "deploy/test_several_web.py",
    "sdk_browser",
    "browser",
    "run",
    "hostile",
    "receivers",
    "openapi",
    "commands",
    "demo",
    "deploy",
    "trial",
    "client",
    "flows/webhook",
    "flows/sandbox",
)


def in_order(files: Iterable[Path]) -> list[Path]:
    """Return the test files in the order in which the processes take them. Files of equal length keep their order."""
    given = list(dict.fromkeys(files))
    waiting = [file for file in given if _is_below(file, WAITING)]
    others = sorted((file for file in given if not _is_below(file, WAITING)), key=_length)
    groups = max(len(waiting), -(-len(others) // OTHERS))
    return list(
        chain.from_iterable(
            (*waiting[n : n + 1], *others[n * OTHERS : (n + 1) * OTHERS]) for n in range(groups)
        )
    )


@cache
def _length(file: Path) -> int:
    return next((number for number, first in enumerate(LONGEST) if _is_below(file, first)), len(LONGEST))


def _is_below(file: Path, name: str) -> bool:
    return file.is_relative_to(TESTS / name)
