"""A forging provider, and the part of Cuota that calls it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cuota.rails.identity.provider import IdentityProvider
from support.identity.forger import Elapsed, Forger, opened_forger


@pytest.fixture
async def forger() -> AsyncIterator[Forger]:
    """The provider."""
    async with opened_forger() as opened:
        yield opened


@pytest.fixture
def elapsed() -> Elapsed:
    """The clock of Cuota's part."""
    return Elapsed()


@pytest.fixture
async def provider(forger: Forger, elapsed: Elapsed) -> AsyncIterator[IdentityProvider]:
    """The part of Cuota that calls the provider."""
    made = IdentityProvider(forger.settings(), now=elapsed)
    yield made
    await made.close()
