"""One data folder for all tests of a file. Its database stays open, so that it starts only once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cuota.db.embedded.server import open_embedded
from support.commands import Cuota, on_a_folder


@pytest.fixture(scope="module")
def cuota() -> Iterator[Cuota]:
    with on_a_folder() as command, open_embedded(command.data):
        yield command


@pytest.fixture(scope="module")
def bare() -> Iterator[Cuota]:
    """The command for tests that fail before any database is opened."""
    with on_a_folder() as command:
        yield command
