"""The web origins of a merchant in its dashboard."""

from __future__ import annotations

import asyncio

import pytest

from cuota.core.desk.role import Role
from cuota.db.merchant import merchants
from cuota.flows.merchant.manage_merchants import MerchantTerms, update_merchant
from support.pages.staff import Staff
from support.pages.visitor import Page

PATH = "/desk/developers"
SHOP = "https://shop.example"


async def origins(staff: Staff) -> tuple[str, ...]:
    found = await merchants.read(staff.service.context.pool, staff.shop.merchant_id)
    assert found is not None
    return found.origins


async def send(staff: Staff, do: str, **fields: str) -> Page:
    """Send one of the two forms about origins."""
    await staff.open(PATH)
    return await staff.press_in(f"origin-{do}", **{"do": do, "reason": "new shop", **fields})


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        (SHOP, SHOP), (f"{SHOP}/", SHOP), ("HTTPS://Shop.Example", SHOP), (f"{SHOP}:443", SHOP),
        ("http://localhost:3000", "http://localhost:3000"),
    ],
)  # fmt: skip
async def test_an_origin_is_stored_in_the_format_of_browsers(staff: Staff, typed: str, stored: str) -> None:
    await staff.enter(Role.DEVELOPER)
    page = await send(staff, "add", origin=typed)
    assert "The origin was added" in page.text
    assert await origins(staff) == (stored,)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "must be an absolute http or https address"),
        (f"{SHOP}/cart", "has a path"),
        (r"https://evil.example\@shop.example", "must be an absolute"),
        ("javascript:alert(1)", "must be an absolute"),
        ("null", "must be an absolute"),
        ("*", "must be an absolute"),
        (f"{SHOP}:99999", "a port from 1 to 65535"),
    ],
)
async def test_a_text_that_is_not_an_origin_is_refused_with_an_explanation(
    staff: Staff, typed: str, words: str
) -> None:
    await staff.enter()
    page = await send(staff, "add", origin=typed)
    assert (page.status, words in page.text) == (400, True)
    assert await origins(staff) == ()


async def test_an_origin_is_removed_and_each_change_is_in_the_audit_log(staff: Staff) -> None:
    await staff.enter()
    for each in (SHOP, "https://two.example"):
        await send(staff, "add", origin=each)
    page = await send(staff, "remove", remove=SHOP)
    assert "The origin was removed" in page.text
    assert await origins(staff) == ("https://two.example",)
    text = (await staff.open("/desk/audit?action=origins.")).text
    assert f"origins: {SHOP}, https://two.example → https://two.example" in text
    assert "Reason: new shop" in text


async def test_a_second_click_adds_and_removes_nothing_more(staff: Staff) -> None:
    await staff.enter()
    await send(staff, "add", origin=SHOP)
    assert "is registered already" in (await send(staff, "add", origin=f"{SHOP}/")).text
    await send(staff, "add", origin="https://two.example")
    await send(staff, "remove", remove=SHOP)
    assert "is not registered any more" in (await send(staff, "remove", remove=SHOP)).text


async def test_concurrent_changes_are_all_kept(staff: Staff) -> None:
    await staff.enter()
    await staff.open(PATH)
    action, held = staff.form_named("origin-add")
    form = {**held, "do": "add", "reason": "x"}
    context, name = staff.service.context, str(staff.shop.merchant_id)
    await asyncio.gather(
        *(staff.http.post(action, data={**form, "origin": f"https://s{n}.example"}) for n in range(5)),
        *(update_merchant(context, name, MerchantTerms(maximum=300_000 + n)) for n in range(5)),
    )
    assert set(await origins(staff)) == {f"https://s{n}.example" for n in range(5)}


async def test_the_fifty_first_origin_is_refused(staff: Staff) -> None:
    many = tuple(f"https://s{number}.example" for number in range(50))
    await update_merchant(staff.service.context, str(staff.shop.merchant_id), MerchantTerms(origins=many))
    await staff.enter()
    page = await send(staff, "add", origin=SHOP)
    assert (page.status, "There are 50 origins already" in page.text) == (400, True)
    assert await origins(staff) == many
