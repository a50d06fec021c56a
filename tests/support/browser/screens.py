"""Checks a page on each kind of screen: that it fits, and that axe finds nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Page, ViewportSize

from support.browser.tabs import PHONE

WIDE: ViewportSize = {"width": 1280, "height": 900}
# A page must fit this width without scrolling sideways (WCAG 1.4.10): the smallest phones, and a zoom of 400 %.
NARROW: ViewportSize = {"width": 320, "height": 740}
# The rules of axe whose result depends on colors. All others find the same in the dark.
OF_COLORS = ("color-contrast", "link-in-text-block")


@dataclass(frozen=True)
class Screen:
    """A size of the window, a color scheme, and the rules of axe to check on it (None: all; empty: only that the page fits)."""

    name: str
    size: ViewportSize
    scheme: Literal["light", "dark"]
    rules: tuple[str, ...] | None = None

    async def show(self, page: Page) -> None:
        """Give the page this size and color scheme."""
        await page.set_viewport_size(self.size)
        await page.emulate_media(color_scheme=self.scheme)


# Each size and each color scheme is checked with all rules once. The last screen is that of a new tab (conftest.py).
SCREENS = (
    Screen("wide, dark", WIDE, "dark"),
    Screen("wide, light", WIDE, "light", OF_COLORS),
    Screen("phone, dark", PHONE, "dark", OF_COLORS),
    Screen("narrow", NARROW, "light", ()),
    Screen("phone, light", PHONE, "light"),
)


async def each_screen(page: Page) -> AsyncIterator[Screen]:
    """Show the loaded page on each screen. At the end, the page has the screen of a new tab again."""
    for screen in SCREENS:
        await screen.show(page)
        yield screen


async def broken_rules(page: Page, rules: tuple[str, ...] | None = None) -> list[str]:
    """Return what axe finds on the page as it is now: each broken rule with its elements. `rules` are the rules to check (None: all)."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE_SCRIPT)
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules is not None:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = await page.evaluate("async options => (await axe.run(options)).violations", options)
    return [f"{each['id']}: {[node['html'] for node in each['nodes']]}" for each in found]


async def problems(page: Page, rules: tuple[str, ...] | None = None) -> list[str]:
    """Return the broken rules of axe, and whether the page is wider than its screen."""
    found = await broken_rules(page, rules) if rules != () else []
    if await page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("wider than the screen")
    return found


async def look(page: Page, name: str) -> None:
    """Check the page on the screen that it has now. `name` is for the message."""
    assert await problems(page) == [], name


async def look_everywhere(page: Page, name: str) -> None:
    """Check the page on each screen. `name` is for the message."""
    async for screen in each_screen(page):
        assert await problems(page, screen.rules) == [], f"{name}, {screen.name}"
