"""Sorts the test files for several test processes: the longest first.

Each process takes the next file when it has finished one. A long file that comes last would run while the other processes have
nothing to do. The order of the other files, and of the tests in a file, does not change.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
# Files of more than about 20 seconds on two cores, then folders whose files take more than about 5 seconds.
LONGEST = (
    "faults",
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


@cache
def turn(file: Path) -> int:
    """Return the place of a test file in the order. Files with the same place keep their order."""
    name = f"{file.relative_to(TESTS).as_posix()}/" if file.is_relative_to(TESTS) else ""
    return next(
        (number for number, first in enumerate(LONGEST) if name.startswith(f"{first}/")), len(LONGEST)
    )
