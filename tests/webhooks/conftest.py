"""Webhooks are tested on a service and a database of the test's own: what is due there is all that couriers find."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cuota import config

# A service of one's own stands with the database's tests, a certificate of one's own making with the rails'.
sys.path += [str(Path(__file__).parents[1] / "db"), str(Path(__file__).parents[1] / "rails")]

from couriers import Post

from own_service import opened_own


@pytest.fixture
async def post(settings: config.Settings, own_database: dict[str, object]) -> AsyncIterator[Post]:
    async with opened_own(settings, own_database) as own:
        yield Post(own)
