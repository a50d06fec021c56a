"""The service uses the browser's headers to refuse a form that another site's page sends."""

from __future__ import annotations

import pytest

from support.makers import Merchant, Running
from support.pages.visitor import ANSWERS, Visitor

FOREIGN = (
    "https://evil.example", "http://127.0.0.1", "http://127.0.0.1:1", "https://127.0.0.1.evil.example", "file://", "x", "",
    "chrome-extension://abc", "http://evil.example@127.0.0.1",
)  # fmt: skip


async def post(visitor: Visitor, headers: list[tuple[str, str]]) -> int:
    """Send the phone form of the open page, and return the status."""
    action, held = visitor.page.form("phone")
    data = {**held, "phone": ANSWERS["phone"]}
    return (await visitor.http.post(action, data=data, headers=headers)).status_code


@pytest.mark.parametrize("place", ["checkout", "account"])
@pytest.mark.parametrize("origin", FOREIGN)
async def test_a_form_with_a_foreign_origin_is_403_although_its_csrf_token_is_right(
    merchant: Merchant, visitor: Visitor, place: str, origin: str
) -> None:
    address = (await merchant.create())["redirectUrl"] if place == "checkout" else "/account"
    page = await visitor.open(address)
    assert await post(visitor, [("origin", origin)]) == 403
    visitor.page = page
    assert await post(visitor, [("origin", "https://evil.example"), ("origin", "null")]) == 403
    assert await post(visitor, []) == 303


@pytest.mark.parametrize("place", ["checkout", "account"])
async def test_a_form_of_the_service_s_own_page_is_accepted_with_its_origin_with_null_and_without_an_origin(
    service: Running, merchant: Merchant, visitor: Visitor, place: str
) -> None:
    """Pages have the referrer policy no-referrer, so browsers send null with the page's own forms."""
    own = service.settings.public_url
    for headers in (
        [("origin", own)],
        [("origin", "null"), ("sec-fetch-site", "same-origin")],
        [("origin", "null")],
        [],
    ):
        address = (await merchant.create())["redirectUrl"] if place == "checkout" else "/account"
        await visitor.open(address)
        assert await post(visitor, headers) == 303, headers


async def test_a_null_origin_of_another_site_s_sandboxed_frame_is_refused(
    merchant: Merchant, visitor: Visitor
) -> None:
    await visitor.open((await merchant.create())["redirectUrl"])
    assert await post(visitor, [("origin", "null"), ("sec-fetch-site", "cross-site")]) == 403
