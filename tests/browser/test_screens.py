"""The check of pages finds a fault that only one kind of screen shows."""

from __future__ import annotations

import pytest

from support.browser.screens import SCREENS, each_screen, problems
from support.browser.tabs import OpenTab

pytestmark = pytest.mark.browser
PAGE = """<!doctype html><html lang="en"><title>Page</title><style>
body {{ color: #111; background: #fff }} @media (prefers-color-scheme: dark) {{ body {{ color: #eee; background: #111 }} }}
@media {when} {{ {fault} }}</style><main><h1>Page</h1><p>A text.</p><button hidden></button></main></html>"""
GREY, LONG, NAMELESS = "p { color: #777 }", "p { width: 200vw }", "button { display: block }"
PHONE, WIDE = "(max-width: 400px)", "(min-width: 1000px)"
LIGHT, DARK = "(prefers-color-scheme: light)", "(prefers-color-scheme: dark)"


@pytest.mark.parametrize(
    ("when", "fault", "found"),
    [
        (f"{PHONE} and {DARK}", GREY, {"phone, dark": "color-contrast"}),
        (f"{PHONE} and {LIGHT}", "p { color: #aaa }", {"phone, light": "color-contrast"}),
        (f"{WIDE} and {DARK}", GREY, {"wide, dark": "color-contrast"}),
        (f"{WIDE} and {LIGHT}", "p { color: #aaa }", {"wide, light": "color-contrast"}),
        (f"{PHONE} and {DARK}", LONG, {"phone, dark": "wider than the screen"}),
        (WIDE, LONG, {"wide, dark": "wider than the screen", "wide, light": "wider than the screen"}),
        (PHONE, NAMELESS, {"phone, light": "button-name"}),
        (WIDE, NAMELESS, {"wide, dark": "button-name"}),
        ("(max-width: 1px)", GREY, {}),
    ],
)
async def test_a_fault_that_one_kind_of_screen_shows_is_found(
    open_tab: OpenTab, when: str, fault: str, found: dict[str, str]
) -> None:
    page = await open_tab()
    await page.set_content(PAGE.format(when=when, fault=fault))
    seen: dict[str, str] = {}
    async for screen in each_screen(page):
        for problem in await problems(page, screen.rules):
            seen[screen.name] = problem.partition(":")[0]
    assert seen == found
    assert {
        "width": await page.evaluate("innerWidth"),
        "height": await page.evaluate("innerHeight"),
    } == SCREENS[-1].size
