"""The client against the real service, blocking and asyncio alike."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.client_tools import Both, Cutter
from support.makers import Merchant


@pytest.fixture(params=["blocking", "asyncio"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def shop(merchant: Merchant, kind: str) -> AsyncIterator[Both]:
    """A client of a merchant of this test's own, with next to no pauses."""
    async with Both.of(kind, merchant) as both:
        yield both


@pytest.fixture
async def cutter(merchant: Merchant) -> AsyncIterator[Cutter]:
    """A way to the service that can lose what passes through it."""
    async with Cutter.to(merchant.service.settings.public_url) as opened:
        yield opened


@pytest.fixture
async def lossy(merchant: Merchant, cutter: Cutter, kind: str) -> AsyncIterator[Both]:
    """The same client, whose way to the service is the cutter."""
    async with Both.of(kind, merchant, base_url=cutter.url) as both:
        yield both
