"""Running the command as an operator does: the helpers of the command's own tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cuota import config
from support.own_service import Own, opened_own


@pytest.fixture
async def own(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Own]:
    """A service on a database that this test may spoil."""
    async with opened_own(settings, own_database) as opened:
        yield opened
