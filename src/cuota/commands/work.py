"""`cuota work`: runs the background jobs without the web application."""

from __future__ import annotations

import argparse

from cuota.commands.parsers import Add
from cuota.run.worker import work_alone


def register(add: Add) -> None:
    """Add the command."""
    add("work", _work, "run only the background jobs; any number of workers may run", json=False)


def _work(_options: argparse.Namespace) -> int:
    return work_alone()
