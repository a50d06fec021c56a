"""Tests of webhooks use a separate service and database, so that couriers find only the test's deliveries."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cuota import config
from support.own_service import opened_own
from support.webhook.couriers import Post


@pytest.fixture
async def post(settings: config.Settings, own_database: dict[str, object]) -> AsyncIterator[Post]:
    async with opened_own(settings, own_database) as own:
        yield Post(own)
