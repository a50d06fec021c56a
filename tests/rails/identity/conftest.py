"""A forging provider, and Cuota's side of it."""

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
    """The clock of Cuota's side."""
    return Elapsed()


@pytest.fixture
async def provider(forger: Forger, elapsed: Elapsed) -> AsyncIterator[IdentityProvider]:
    """Cuota's side."""
    made = IdentityProvider(forger.settings(), now=elapsed)
    yield made
    await made.close()
