"""Programs of the system that some tests need.

Without them these tests are skipped, and the end of the run counts the skips.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable

import pytest

INSTALLS = "`make test-system` installs it"
HOW = {
    "chromium": f"{INSTALLS}, or set CHROMIUM to its path",
    "php": INSTALLS,
    "strace": INSTALLS,
    "hledger": INSTALLS,
    "bean-check": INSTALLS,
    "node": "Node 20 or later, from nodejs.org",
    "npm": "Node 20 or later, from nodejs.org",
}


def needed(program: str) -> str:
    """Return the program's path.

    If the program is missing, skip the test. In CI, fail instead: otherwise CI would prove less than it claims.
    """
    found = (os.environ.get("CHROMIUM") if program == "chromium" else None) or shutil.which(program)
    if found is None:
        missing = f"{program} is missing ({HOW[program]})"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def told(reasons: Iterable[str]) -> list[str]:
    """Return one line for each reason for which tests were skipped, with the number of tests."""
    counted = Counter(reason.removeprefix("Skipped: ") for reason in reasons)
    return [
        f"{count} {'test' if count == 1 else 'tests'} skipped: {reason}"
        for reason, count in counted.most_common()
    ]
