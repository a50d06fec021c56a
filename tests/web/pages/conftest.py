"""Visitors of the hosted checkout, and browsers with passkeys in either dashboard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from support.makers import Merchant, Running
from support.pages.operator_staff import OperatorStaff
from support.pages.passkeys import Browsers, Keyed
from support.pages.staff import Staff
from support.pages.visitor import Visitor


@pytest.fixture
async def visit(service: Running) -> AsyncIterator[Callable[..., Visitor]]:
    """Opens browsers, each with its own cookies. The arguments go to its HTTP client."""
    async with AsyncExitStack() as stack:
        opened: list[Visitor] = []

        def browser(**more: Any) -> Visitor:
            opened.append(Visitor(service.client(**more)))
            stack.push_async_callback(opened[-1].http.aclose)
            return opened[-1]

        yield browser


@pytest.fixture
def visitor(visit: Callable[..., Visitor]) -> Visitor:
    """One browser."""
    return visit()


@pytest.fixture(params=["desk", "operator"])
async def keyed(request: pytest.FixtureRequest, merchant: Merchant) -> AsyncIterator[Browsers]:
    """Makes browsers for people of one dashboard, each with an authenticator."""
    async with AsyncExitStack() as stack:

        def make() -> Keyed:
            http = merchant.service.client()
            stack.push_async_callback(http.aclose)
            if request.param == "desk":
                return Keyed(Staff(http, merchant), "/desk")
            return Keyed(OperatorStaff(http, merchant.service), "/operator")

        yield make
