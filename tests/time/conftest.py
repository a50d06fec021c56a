"""What the tests of time share: a service whose clock can be moved, in this process or as `cuota serve`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from time_sandbox import Sandbox, opened_sandbox

from cuota import config

# Real processes of the service stand with the tests that kill them.
sys.path.append(str(Path(__file__).parents[1] / "faults"))

from served import Service, service


@pytest.fixture
async def sandbox(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Sandbox]:
    """On a database of this test's own."""
    async with opened_sandbox(settings, own_database) as opened:
        yield opened


@pytest.fixture
def served() -> Iterator[Service]:
    """`cuota serve` with two worker processes."""
    with service() as made:
        made.start(workers=2)
        yield made
