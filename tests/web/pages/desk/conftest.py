"""People of the team of a merchant whose orders are captured by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from support.makers import Merchant
from support.pages.staff import Staff


@pytest.fixture
async def browser(merchant: Merchant) -> AsyncIterator[Callable[..., Staff]]:
    """Creates people in the team of `merchant` or of another merchant, each with a browser."""
    async with AsyncExitStack() as stack:

        def make(shop: Merchant = merchant) -> Staff:
            staff = Staff(shop.service.client(), shop)
            stack.push_async_callback(staff.http.aclose)
            return staff

        yield make


@pytest.fixture
def staff(browser: Callable[..., Staff]) -> Staff:
    """One browser that has not signed in yet."""
    return browser()
