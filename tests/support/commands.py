"""Runs `python -m cuota` as an operator does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.command_server import command_server
from support.folders import new_folder

Done = subprocess.CompletedProcess[str]
# The command's own name in its hints about what to type next.
COMMAND = f"{sys.executable} -m cuota"


@dataclass(frozen=True)
class Cuota:
    """Runs `cuota` commands on one data folder."""

    data: Path

    def environment(self, **settings: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CUOTA_")}
        return {**kept, "CUOTA_DATA_DIR": str(self.data), **settings}

    def __call__(self, *arguments: str | bytes, **settings: str) -> Done:
        """Run a command to its end. It must never print a traceback."""
        words = [os.fsdecode(argument) for argument in arguments]
        done = command_server().run(words, self.environment(**settings), 90)
        assert "Traceback" not in done.stderr, done.stderr
        return done


def only_where(done: Done) -> bool:
    """True if standard error contains only the line that names the database and the service."""
    return done.stderr.startswith("cuota: sandbox, data in ") and done.stderr.count("\n") == 1


@contextmanager
def on_a_folder() -> Iterator[Cuota]:
    """Make a data folder that the unprivileged user of postgres may enter."""
    base = new_folder("cuota-cli-")
    try:
        yield Cuota(base / "data")
    finally:
        shutil.rmtree(base, ignore_errors=True)
