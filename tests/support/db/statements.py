"""The SQL constants of the modules of db."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import cuota.db

FOLDER = Path(cuota.db.__file__).parent


def statements() -> Iterator[tuple[str, str]]:
    """Every SQL constant of every module of db, as (module.NAME, text)."""
    for file in sorted(FOLDER.rglob("*.py")):
        path = file.relative_to(FOLDER).with_suffix("")
        module = importlib.import_module(".".join(["cuota.db", *path.parts]))
        for name, value in vars(module).items():
            if isinstance(value, str) and re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", value):
                yield f"{file.stem}.{name}", value
