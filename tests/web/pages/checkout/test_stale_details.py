"""A page that was opened before the details changed in another tab does not pay with details that it did not show."""

from __future__ import annotations

from typing import Any

import pytest

from support.makers import Merchant, Running
from support.pages.visitor import Page, Visitor, address_of, charges
from support.signed import started

HOME = {
    "recipient": "Ann Lee",
    "address_line1": "1 Xylo Street",
    "city": "Boise",
    "state": "ID",
    "postcode": "83702",
}
OFFICE = {**HOME, "address_line1": "99 Yonder Road", "city": "Salem", "state": "OR", "postcode": "97301"}
CHANGED = "The details on this page have changed since you opened it. Please check them before you pay."


async def express(merchant: Merchant, visitor: Visitor) -> dict[str, Any]:
    """Continue to the pay page of an order that is sent home."""
    order = await started(merchant, checkoutFlow="express", capture=False)
    await visitor.open(order["checkoutUrl"].replace("display=popup", "display=redirect"))
    for step in ("phone", "code", "details"):
        await visitor.send(step)
    await visitor.send("shipping", **HOME)
    return order


async def change(
    merchant: Merchant, visitor: Visitor, order: dict[str, Any], step: str, **fields: str
) -> Page:
    """Change a step in a second tab, and return to the first tab. Return the second tab's page."""
    first = visitor.page
    await visitor.open(f"/checkout/{merchant.merchant_id}/{order['orderId']}?step={step}")
    second = await visitor.send(step, **fields)
    visitor.page = first
    return second


async def test_a_stale_page_does_not_send_an_express_order_to_an_address_that_it_did_not_show(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await express(merchant, visitor)
    assert "1 Xylo Street" in visitor.page.text
    await change(merchant, visitor, order, "shipping", **OFFICE)
    page = await visitor.send("pay")
    assert (page.status, CHANGED in page.text) == (400, True)
    assert "99 Yonder Road" in page.text
    assert "1 Xylo Street" not in page.text
    assert await charges(service, order) == []
    # This page shows where the order is sent, so its button pays.
    assert (await visitor.send("pay")).outcome == "approved"
    assert (await merchant.read(order))["shippingAddress"]["line1"] == "99 Yonder Road"


@pytest.mark.parametrize(
    "changed", [{"email": "other@mail.example"}, {"address_line1": "2 Side Street"}, {"postcode": "94104"}]
)
async def test_a_stale_page_does_not_pay_with_a_payer_that_it_did_not_show(
    service: Running, merchant: Merchant, visitor: Visitor, changed: dict[str, str]
) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    await change(merchant, visitor, order, "details", **changed)
    page = await visitor.send("pay")
    assert (page.status, CHANGED in page.text) == (400, True)
    assert next(iter(changed.values())) in page.text
    assert await charges(service, order) == []
    assert (await visitor.send("pay")).outcome == "approved"


async def test_a_stale_page_pays_if_the_other_tab_changed_nothing(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await express(merchant, visitor)
    await change(merchant, visitor, order, "shipping", **HOME)
    await change(merchant, visitor, order, "details")
    assert (await visitor.send("pay")).outcome == "approved"


async def test_a_form_that_does_not_say_what_its_page_showed_is_shown_again(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    page = await visitor.send("pay", details_hash="")
    assert (page.status, CHANGED in page.text) == (400, True)
    assert await charges(service, order) == []


async def test_a_page_of_a_release_that_had_no_such_hash_pays(merchant: Merchant, visitor: Visitor) -> None:
    """During an upgrade, the pages of both releases are open at once, and the proxy may send a form to either."""
    await visitor.until("pay", await merchant.create())
    assert (await visitor.send("pay", without="details_hash")).outcome == "approved"


async def test_the_page_after_another_error_still_says_what_it_shows(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    assert (await visitor.send("pay", agree="no")).status == 400
    assert (await visitor.open(f"{address_of(order)}?step=pay")).form("pay")[1]["details_hash"]
    assert (await visitor.send("pay")).outcome == "approved"
