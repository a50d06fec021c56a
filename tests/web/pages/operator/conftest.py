"""People of the operator's team."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from cuota.config import Settings
from support.db.template import Template
from support.identity.company import Companies
from support.identity.real_provider import RealProvider, opened_provider
from support.makers import Merchant
from support.pages.operator_staff import OperatorStaff


@pytest.fixture
async def desk_browser(merchant: Merchant) -> AsyncIterator[Callable[..., OperatorStaff]]:
    """Creates people of the operator's team, each with a browser."""
    async with AsyncExitStack() as stack:

        def make() -> OperatorStaff:
            person = OperatorStaff(merchant.service.client(), merchant.service)
            stack.push_async_callback(person.http.aclose)
            return person

        yield make


@pytest.fixture
def operator(desk_browser: Callable[..., OperatorStaff]) -> OperatorStaff:
    """One browser that has not signed in yet."""
    return desk_browser()


@pytest.fixture(scope="session")
async def real_provider(settings: Settings) -> AsyncIterator[RealProvider]:
    """The OpenID Connect provider that all tests of this process share. Each test creates its own accounts."""
    async with opened_provider(settings.public_url) as opened:
        yield opened


@pytest.fixture
async def companies(
    settings: Settings, template: Template, real_provider: RealProvider
) -> AsyncIterator[Companies]:
    """Starts services whose operator's people sign in at the provider."""
    async with AsyncExitStack() as stack:
        yield Companies(settings, dict(template.shared), real_provider, stack)
