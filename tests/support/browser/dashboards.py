"""Code that the browser tests of both dashboards share: the screen sizes, and the check of a page."""

from __future__ import annotations

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Page

from cuota.web.server.route import Area, Route
from support.browser.tabs import PHONE

WIDE = {"width": 1280, "height": 900}
HOW = pytest.mark.parametrize(
    "how",
    [
        {"viewport": PHONE, "color_scheme": "light"},
        {"viewport": PHONE, "color_scheme": "dark"},
        {"viewport": WIDE, "color_scheme": "light"},
        {"viewport": WIDE, "color_scheme": "dark"},
    ],
    ids=["phone", "phone in the dark", "wide", "wide in the dark"],
)


def is_page(row: Route, area: Area) -> bool:
    """Return whether the route shows a page of the area at a fixed address. An export is a download, not a page."""
    fixed = "{" not in row.path and not row.path.endswith("/export")
    return row.area is area and "GET" in row.methods and fixed


async def look(page: Page, name: str) -> None:
    """Check that the page fits the screen and that axe finds nothing."""
    width = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert width <= 0, f"{name} is wider than the screen"
    found = await Axe().run(page)
    assert found.violations_count == 0, f"{name}: {found.generate_report()}"
