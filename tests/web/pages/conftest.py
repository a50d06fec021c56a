"""Visitors of the hosted checkout."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from support.makers import Running
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
