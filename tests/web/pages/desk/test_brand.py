"""A merchant's brand: its name and logo in the checkout and in messages."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from uuid import UUID

import pytest

from cuota.flows.checkout.leave_checkout import lapse_order
from cuota.flows.merchant.manage_merchants import BadMerchant, MerchantTerms, create_merchant, update_merchant
from cuota.flows.plan.send_messages import send_messages
from cuota.rails import inbox
from support.core.pictures import jpeg, png, webp
from support.makers import Merchant
from support.pages.settings import held, save, send_logo
from support.pages.staff import Staff
from support.pages.visitor import Visitor, address_of


async def test_consumers_see_the_display_name_and_the_support_links(staff: Staff) -> None:
    name = f"Alder & Oak {secrets.token_hex(3)}"
    await staff.enter()
    await save(
        staff,
        "brand",
        display_name=name,
        support_email="help@alder.example",
        support_url="https://alder.example/help",
    )
    order = await staff.shop.create()
    visitor = Visitor(staff.service.client())
    page = await visitor.open(order["redirectUrl"])
    assert name in page.text
    assert staff.shop.name not in page.text
    assert "https://alder.example/help" in page.seen.links
    assert "mailto:help@alder.example" in page.seen.links
    email = f"{secrets.token_hex(4)}@mail.example"
    page = await visitor.buy(order, email=email)
    assert page.outcome == "approved"
    assert name in page.text
    while await send_messages(staff.service.context):
        pass
    mails = await inbox.look(staff.service.context.pool, to=email)
    assert any(name in mail.text for mail in mails)
    assert staff.shop.name not in "".join(mail.text for mail in mails if name in mail.text)
    await visitor.http.aclose()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"support_email": "help"}, "Enter an e-mail address"),
        ({"support_url": "javascript:alert(1)"}, "must be an absolute http or https address"),
        ({"support_url": "https://user@evil.example/"}, "must be an absolute"),
        ({"display_name": "x" * 101}, "at most 100 characters"),
        ({"display_name": "Shop\u202eelgoog"}, "only characters that can be seen"),
        ({"display_name": "\u0405hop 1"}, "letters of one alphabet"),
        ({"reason": " "}, "Say why"),
    ],
)
async def test_an_invalid_brand_changes_nothing(staff: Staff, wrong: dict[str, str], words: str) -> None:
    await staff.enter()
    before = await held(staff)
    page = await save(staff, "brand", **{"display_name": "Alder", **wrong})
    assert (page.status, words in page.text) == (400, True)
    assert await held(staff) == before


async def test_a_merchant_cannot_show_another_merchants_name(
    staff: Staff, browser: Callable[..., Staff], auto_merchant: Merchant
) -> None:
    context, name = staff.service.context, f"Brand {secrets.token_hex(4)}"
    await staff.enter()
    page = await save(staff, "brand", display_name=auto_merchant.name.upper())
    assert (page.status, "Another merchant has this name" in page.text) == (400, True)
    await save(staff, "brand", display_name=name)
    other = browser(auto_merchant)
    await other.enter()
    assert (await save(other, "brand", display_name=name.lower())).status == 400
    with pytest.raises(BadMerchant, match="already a merchant named"):
        await create_merchant(context, MerchantTerms(name=name))
    with pytest.raises(BadMerchant, match="already a merchant named"):
        await update_merchant(context, str(auto_merchant.merchant_id), MerchantTerms(name=name))


async def test_markup_in_a_display_name_is_shown_as_text(staff: Staff) -> None:
    await staff.enter()
    await save(staff, "brand", display_name="<b>Bold</b> & sons")
    order = await staff.shop.create()
    visitor = Visitor(staff.service.client())
    page = await visitor.open(order["redirectUrl"])
    assert "&lt;b&gt;Bold&lt;/b&gt; &amp; sons" in page.answer.text
    await visitor.http.aclose()


@pytest.mark.parametrize(
    ("make", "media_type"), [(png, "image/png"), (jpeg, "image/jpeg"), (webp, "image/webp")]
)
async def test_a_logo_is_shown_in_the_checkout_and_served_with_safe_headers(
    staff: Staff, make: Callable[..., bytes], media_type: str
) -> None:
    await staff.enter()
    page = await send_logo(staff, make(), name="evil.html")
    assert "The change is saved" in page.text
    order = await staff.shop.create()
    visitor = Visitor(staff.service.client())
    page = await visitor.open(order["redirectUrl"])
    (address,) = set(re.findall(r'src="(/logos/[^"]+)"', page.answer.text))
    answer = await visitor.http.get(address)
    await visitor.http.aclose()
    assert answer.status_code == 200
    assert answer.headers["content-type"] == media_type
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert "immutable" in answer.headers["cache-control"]
    assert "logo: none → " in (await staff.open("/desk/audit?action=settings.")).text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "Choose a file"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is not a PNG, JPEG or WebP picture"),
        (b"\x89PNG\r\n\x1a\n<html><script>alert(1)</script>", "is not a PNG"),
        (bytes(100 * 1024 + 1), "larger than 100 KiB"),
        (png(2000, 2000), "2000 by 2000 pixels"),
    ],
)
async def test_a_file_that_is_not_a_logo_changes_nothing(staff: Staff, content: bytes, words: str) -> None:
    await staff.enter()
    page = await send_logo(staff, content)
    assert (page.status, words in page.text) == (400, True)
    assert (await held(staff)).own.logo is None


async def test_a_replaced_or_removed_logo_is_no_longer_served(staff: Staff) -> None:
    await staff.enter()
    addresses = []
    for size in (64, 65):
        await send_logo(staff, png(size, size))
        addresses.append(f"/logos/{staff.shop.merchant_id}/{(await held(staff)).own.logo}")
    assert [(await staff.http.get(each)).status_code for each in addresses] == [404, 200]
    await send_logo(staff, b"", do="remove-logo")
    assert [(await staff.http.get(each)).status_code for each in addresses] == [404, 404]
    assert (await held(staff)).own.logo is None


@pytest.mark.parametrize(
    "path", ["/logos/x/y", "/logos/{id}/" + "0" * 64, "/logos/{id}/..%2f..%2fetc", "/logos/{id}/%00"]
)
async def test_an_unknown_logo_is_not_found(staff: Staff, path: str) -> None:
    answer = await staff.http.get(path.replace("{id}", str(staff.shop.merchant_id)))
    assert answer.status_code == 404


@pytest.mark.parametrize("fields", [{}, {"surname": "Declinetest"}], ids=["approved", "declined"])
async def test_a_page_that_returns_to_the_shop_by_itself_has_no_support_links(
    staff: Staff, visitor: Visitor, fields: dict[str, str]
) -> None:
    await staff.enter()
    asked = {"support_email": "help@alder.example", "support_url": "https://alder.example/help"}
    await save(staff, "brand", display_name=staff.shop.name, **asked)
    page = await visitor.buy(await staff.shop.create(), **fields)
    assert page.left
    assert (page.seen.forms, list(page.seen.links)) == ([], [page.left])


async def test_a_result_page_that_waits_for_a_click_has_the_support_links(
    staff: Staff, visitor: Visitor
) -> None:
    await staff.enter()
    await save(staff, "brand", display_name=staff.shop.name, support_url="https://alder.example/help")
    order = await staff.shop.create()
    await visitor.until("details", order)
    async with staff.service.clock.moved(minutes=61):
        await lapse_order(staff.service.context, staff.shop.merchant_id, UUID(order["orderId"]))
        page = await visitor.open(address_of(order))
    assert (page.outcome, page.left) == ("abandoned", None)
    assert "https://alder.example/help" in page.seen.links
