"""Programs that read the files under deploy/."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def program(name: str) -> str:
    """Return the program's path. Skip the test if the program is missing."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed, so it did not check its file under deploy/")
    return found


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
