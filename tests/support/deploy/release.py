"""A release of Cuota in its own folder: its commands, and machines that serve with it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.deploy.machines import environment

READY_SECONDS = 120.0


@dataclass(frozen=True)
class InstalledRelease:
    """A checkout whose programs run with the settings of the service."""

    name: str
    python: Path
    settings: dict[str, str]

    def command(self, *arguments: str) -> str:
        """Run one command to its end, and return its output."""
        done = subprocess.run(
            [self.python, "-m", "cuota", *arguments], env=environment(**self.settings), capture_output=True, text=True,
            timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{self.name}: cuota {' '.join(arguments)}: {done.stderr}{done.stdout}"
        return done.stdout

    @contextmanager
    def serving(self, port: int, place: Path) -> Iterator[int]:
        """Run a machine of this release until the block ends. Yields the id of its parent process."""
        place.mkdir()
        with (place / "out").open("w") as out, (place / "log").open("w") as log:
            process = subprocess.Popen(
                [self.python, "-m", "cuota", "serve", "--port", str(port), "--workers", "1"],
                env=environment(**{**self.settings, "CUOTA_DATA_DIR": str(place / "data"), "CUOTA_LOG_LEVEL": "warning"}),
                stdout=out, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        until = time.monotonic() + READY_SECONDS
        while '"ready": true' not in (place / "out").read_text():
            started = process.poll() is None and time.monotonic() < until
            assert started, (place / "log").read_text()
            time.sleep(0.1)
        try:
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, f"a machine of {self.name} did not end well"


def kill_workers_of(parent: int) -> None:
    """Kill the worker processes of a machine with -9. Its parent must replace them."""
    children = _children(parent)
    # The workers are children of one fork server. Earlier releases had none.
    workers = [worker for child in children for worker in _children(child)] or children
    for worker in workers:
        os.kill(worker, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
