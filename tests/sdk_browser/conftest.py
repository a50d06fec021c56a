"""A real Chromium that blocks third-party cookies, the service, and a merchant's site on other origins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from support.makers import Running
from support.sdk_browser.hands import Tabs
from support.sdk_browser.merchant_site import Site, opened_site


@pytest.fixture(scope="session")
async def site(service: Running) -> AsyncIterator[Site]:
    """The merchant's site."""
    async with opened_site(service.settings.public_url) as opened:
        yield opened


@pytest.fixture
async def tabs(chromium: Browser) -> AsyncIterator[Tabs]:
    """Opens tabs. An error or a violated policy on any of their pages, popups or frames fails the test."""
    async with AsyncExitStack() as stack:
        opened = Tabs(chromium, stack)
        yield opened
    assert opened.complaints == []


@pytest.fixture
async def tab(tabs: Tabs) -> Page:
    """One tab in a wide window."""
    options: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
    return await tabs.open(**options)
