"""A browser that keeps no cookies: no page can go on, and each says what the person can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.makers import Merchant
from support.pages.visitor import Page, Visitor


class Forgetful(Visitor):
    """A browser that deletes each cookie at once."""

    async def open(self, url: str) -> Page:
        answer = await self.http.get(url)
        self.http.cookies.clear()
        while answer.is_redirect:
            answer = await self.http.get(answer.headers["location"])
            self.http.cookies.clear()
        self.page = Page(answer)
        return self.page


async def test_the_account_page_says_that_cookies_are_needed(visit: Callable[..., Any]) -> None:
    visitor = Forgetful(visit().http)
    page = await visitor.open("/account")
    action, held = page.form("phone")
    answer = await visitor.http.post(action, data={**held, "phone": "2125550187"})
    page = await visitor.open(answer.headers["location"])
    assert "allow cookies for this site" in page.text
    assert page.has_form("phone")


async def test_the_checkout_says_that_cookies_are_needed(
    merchant: Merchant, visit: Callable[..., Any]
) -> None:
    page = await Forgetful(visit().http).open((await merchant.create())["redirectUrl"])
    assert page.status == 404
    assert "your browser blocks cookies: allow them for this site" in page.text
