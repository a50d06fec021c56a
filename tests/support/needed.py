"""Programs of the system that some tests run: without one these tests are skipped, and counted at the end of the run."""

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
    "node": "Node 20 or later, from nodejs.org",
    "npm": "Node 20 or later, from nodejs.org",
}


def needed(program: str) -> str:
    """Its path. Where it is missing the test is skipped; in CI it fails: a suite without its browser proves nothing."""
    found = (os.environ.get("CHROMIUM") if program == "chromium" else None) or shutil.which(program)
    if found is None:
        missing = f"{program} is missing ({HOW[program]})"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def told(reasons: Iterable[str]) -> list[str]:
    """One line for each reason for which tests were skipped, with how many."""
    counted = Counter(reason.removeprefix("Skipped: ") for reason in reasons)
    return [
        f"{count} {'test' if count == 1 else 'tests'} skipped: {reason}"
        for reason, count in counted.most_common()
    ]
