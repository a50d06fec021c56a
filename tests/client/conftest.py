"""Fixtures that run both clients, blocking and asyncio, against the real service."""

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
    """A client of this test's own merchant, with almost no pauses between retries."""
    async with Both.of(kind, merchant) as both:
        yield both


@pytest.fixture
async def cutter(merchant: Merchant) -> AsyncIterator[Cutter]:
    """A proxy to the service that can lose requests and answers."""
    async with Cutter.to(merchant.service.settings.public_url) as opened:
        yield opened


@pytest.fixture
async def lossy(merchant: Merchant, cutter: Cutter, kind: str) -> AsyncIterator[Both]:
    """The same client. It connects through the proxy that loses answers."""
    async with Both.of(kind, merchant, base_url=cutter.url) as both:
        yield both
