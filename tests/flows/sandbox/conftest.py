"""Code that the tests of time share: a service with a movable clock, in this process or as `cuota serve`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from cuota import config
from support.faults.served import Service, service
from support.time.sandbox import Sandbox, opened_sandbox


@pytest.fixture
async def sandbox(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Sandbox]:
    """A service on a separate database of this test."""
    async with opened_sandbox(settings, own_database) as opened:
        yield opened


@pytest.fixture
def served() -> Iterator[Service]:
    """A process of `cuota serve` with two worker processes."""
    with service() as made:
        made.start(workers=2)
        yield made
