"""The folder of the browser SDK, with its two tools installed as its lock says."""

from __future__ import annotations

import fcntl
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from needed import needed

SDK = Path(__file__).resolve().parents[1] / "sdk"
SERVED = SDK.parent / "src/cuota/web/pages/static"


def _versions(path: Path) -> dict[str, str]:
    packages: dict[str, Any] = json.loads(path.read_text())["packages"]
    return {
        name: package["version"] for name, package in packages.items() if name and not package.get("optional")
    }


@cache
def sdk() -> Path:
    """Installs at most once a run, whatever runs beside it, and only when what is there is not what the lock says."""
    needed("npm")
    installed = SDK / "node_modules/.package-lock.json"
    with (SDK / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists() or _versions(installed) != _versions(SDK / "package-lock.json"):
            subprocess.run(
                ["npm", "ci", "--ignore-scripts"], cwd=SDK, check=True, capture_output=True, timeout=300
            )
    return SDK
