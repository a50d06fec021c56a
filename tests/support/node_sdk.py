"""Folders with Node tools, each installed from its lock file: those of the browser SDK, and others."""

from __future__ import annotations

import fcntl
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from support.needed import needed

SDK = Path(__file__).resolve().parents[2] / "sdk"
SERVED = SDK.parent / "src/cuota/web/pages/static"


def _versions(path: Path) -> dict[str, str]:
    packages: dict[str, Any] = json.loads(path.read_text())["packages"]
    return {
        name: package["version"] for name, package in packages.items() if name and not package.get("optional")
    }


def sdk() -> Path:
    """Return the folder of the browser SDK, with its two tools installed."""
    return installed(SDK)


@cache
def installed(folder: Path) -> Path:
    """Install the tools if the lock file has changed: once in a run, even if several processes call this at the same
    time."""
    needed("npm")
    there = folder / "node_modules/.package-lock.json"
    with (folder / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not there.exists() or _versions(there) != _versions(folder / "package-lock.json"):
            subprocess.run(
                ["npm", "ci", "--ignore-scripts"], cwd=folder, check=True, capture_output=True, timeout=600
            )
    return folder


def check_lock(folder: Path) -> None:
    """Check that a lock file names no registry and has a hash for every package."""
    text = (folder / "package-lock.json").read_text()
    assert '"resolved"' not in text
    packages = json.loads(text)["packages"]
    assert all(package["integrity"].startswith("sha512-") for name, package in packages.items() if name)
