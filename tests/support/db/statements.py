"""The SQL of db: the constants of its modules, and the statements inside the functions that save orders."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import cuota.db
from support.db import save_functions

FOLDER = Path(cuota.db.__file__).parent
# Statements that call Citus's functions or read its catalog, which a database without Citus does not have.
OF_CITUS = ("citus.", "left_behind.", "nodes.", "serves.", "watch.", "entry_node.", "across._PLACES")


def statements() -> Iterator[tuple[str, str]]:
    """Return every SQL constant of every module of db, as (module.NAME, text)."""
    for file in sorted(FOLDER.rglob("*.py")):
        path = file.relative_to(FOLDER).with_suffix("")
        module = importlib.import_module(".".join(["cuota.db", *path.parts]))
        for name, value in vars(module).items():
            if isinstance(value, str) and re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", value):
                yield f"{file.stem}.{name}", value


def every_statement() -> Iterator[tuple[str, str]]:
    """Return the SQL constants of db, and the statements inside the functions that save orders."""
    yield from statements()
    yield from save_functions.statements()
