"""The environment in which localstripe runs: made once from its lock file, in .venv/localstripe."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCK = ROOT / "tests/rails/stripe/requirements.lock"
FOLDER = ROOT / ".venv/localstripe"
SECONDS = 300


def python() -> Path:
    """Return the environment's Python. If it cannot be made (no network), skip the test; in CI, fail."""
    problem = _made()
    if problem is not None:
        missing = f"localstripe cannot be installed from {LOCK.relative_to(ROOT)} (is a package registry reachable?)"
        if os.environ.get("CI"):
            pytest.fail(f"{missing}\n{problem}")
        pytest.skip(missing)
    return FOLDER / "bin/python"


def _made() -> str | None:
    """Make the environment unless it is there. Several test processes make it once. Return what went wrong, or None."""
    FOLDER.parent.mkdir(exist_ok=True)
    ready, digest = FOLDER / "ready", hashlib.sha256(LOCK.read_bytes()).hexdigest()
    with (FOLDER.parent / "localstripe.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if ready.exists() and ready.read_text() == digest:
            return None
        for command in (
            [sys.executable, "-m", "venv", "--clear", "--without-pip", str(FOLDER)],
            [sys.executable, "-m", "pip", "--python", str(FOLDER / "bin/python"), "--disable-pip-version-check",
             "install", "--quiet", "--require-hashes", "-r", str(LOCK)],
        ):  # fmt: skip
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            except subprocess.TimeoutExpired:
                return f"{command[2]} took longer than {SECONDS} seconds"
            if done.returncode:
                return done.stderr[-2000:]
        ready.write_text(digest)
    return None
