"""Makes Python environments for tools of the tests, each made once from its lock file, in .venv/NAME."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300


@dataclass(frozen=True)
class ToolEnvironment:
    """A separate Python environment. `lock` is a path in this repository."""

    name: str
    lock: str

    @property
    def folder(self) -> Path:
        return ROOT / ".venv" / self.name

    def python(self) -> Path:
        """Return the environment's Python. If it cannot be made (no network), skip the test; in CI, fail."""
        problem = self._made()
        if problem is not None:
            missing = f"{self.name} cannot be installed from {self.lock} (is a package registry reachable?)"
            if os.environ.get("CI"):
                pytest.fail(f"{missing}\n{problem}")
            pytest.skip(missing)
        return self.folder / "bin/python"

    def _made(self) -> str | None:
        """Make the environment unless it exists. Several test processes together make it only once. Return the error's
        text, or None."""
        self.folder.parent.mkdir(exist_ok=True)
        lock_file = ROOT / self.lock
        ready, digest = self.folder / "ready", hashlib.sha256(lock_file.read_bytes()).hexdigest()
        with (self.folder.parent / f"{self.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if ready.exists() and ready.read_text() == digest:
                return None
            for command in (
                [sys.executable, "-m", "venv", "--clear", "--without-pip", str(self.folder)],
                [sys.executable, "-m", "pip", "--python", str(self.folder / "bin/python"),
                 "--disable-pip-version-check", "install", "--quiet", "--require-hashes", "-r", str(lock_file)],
            ):  # fmt: skip
                try:
                    done = subprocess.run(
                        command, capture_output=True, text=True, timeout=SECONDS, check=False
                    )
                except subprocess.TimeoutExpired:
                    return f"{command[2]} took longer than {SECONDS} seconds"
                if done.returncode:
                    return done.stderr[-2000:]
            ready.write_text(digest)
        return None
