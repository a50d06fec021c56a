"""Code that the browser tests share: the shop, and how they open a tab."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from playwright.async_api import Page, ViewportSize

from support.makers import Merchant

PHONE: ViewportSize = {"width": 375, "height": 812}
OpenTab = Callable[..., Awaitable[Page]]


@dataclass
class Shop:
    """The demo shop, and its merchant."""

    url: str
    merchant: Merchant
