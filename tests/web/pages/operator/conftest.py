"""People of the operator's team."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from support.makers import Merchant
from support.pages.operator_staff import OperatorStaff


@pytest.fixture
async def desk_browser(merchant: Merchant) -> AsyncIterator[Callable[..., OperatorStaff]]:
    """Makes browsers of the operator's people."""
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
