"""The dashboard and the checkout show the same quantities and amounts of an order's items."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from support.makers import Merchant
from support.pages.staff import Staff
from support.pages.visitor import Visitor

Shown = tuple[str, str]


async def in_checkout(visitor: Visitor, order: dict[str, Any]) -> dict[str, Shown]:
    """Return the quantity and the amount of each item on the checkout's first page. The page shows no quantity of 1."""
    page = await visitor.open(order["redirectUrl"])
    found = re.findall(
        r'<span class="what"><bdi>(.*?)</bdi>(?: <span class="times">\u00d7 (.*?)</span>)?</span> <span class="amount">(.*?)</span>',
        html.unescape(page.answer.text),
    )
    return {name: (quantity or "1", amount) for name, quantity, amount in found}


async def in_dashboard(staff: Staff, order: dict[str, Any]) -> dict[str, Shown]:
    page = await staff.open(f"/desk/orders/{order['orderId']}")
    cells = r'<td class="amount">(.*?)</td>'
    found = re.findall(rf'<th scope="row"><bdi>(.*?)</bdi></th> {cells} {cells}', page.answer.text)
    return {name: (quantity, amount) for name, quantity, amount in found}


async def captured(shop: Merchant, items: list[dict[str, Any]]) -> dict[str, Any]:
    order = await shop.approved("50.00", items=items)
    assert (await shop.move(order, "capture", "50.00")).status_code == 200
    return order


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        ({"quantity": 3, "price": 3.333333}, ("3", "$10.00")),
        ({"quantity": 1, "price": 12.345}, ("1", "$12.35")),
        ({"quantity": 1, "price": 0.004}, ("1", "$0.00")),
        ({"quantity": 2, "price": -1.5}, ("2", "-$3.00")),
        ({"quantity": 0, "price": 20}, ("0", "$0.00")),
        ({"price": 20}, ("1", "$20.00")),
        ({"quantity": 2}, ("2", "")),
    ],
)
async def test_both_show_the_price_times_the_quantity_rounded_half_up_and_nothing_without_a_price(
    staff: Staff, visitor: Visitor, item: dict[str, Any], shown: Shown
) -> None:
    order = await staff.shop.create("50.00", items=[{"name": "Mug", **item}])
    await staff.enter()
    assert await in_checkout(visitor, order) == {"Mug": shown}
    assert await in_dashboard(staff, order) == {"Mug": shown}


async def test_the_refund_of_an_item_is_offered_for_its_rounded_amount(staff: Staff) -> None:
    order = await captured(staff.shop, [{"name": "Third", "quantity": 3, "price": 3.333333}])
    await staff.enter()
    await staff.open(f"/desk/orders/{order['orderId']}")
    page = await staff.open(staff.page.link("Refund Third"))
    assert page.form("refund")[1]["amount"] == "10.00"


@pytest.mark.parametrize(
    "item", [{"quantity": 0, "price": 20}, {"quantity": 2}, {"quantity": 1, "price": -5}]
)
async def test_no_refund_is_offered_for_an_item_without_an_amount(staff: Staff, item: dict[str, Any]) -> None:
    order = await captured(staff.shop, [{"name": "Gift", **item}])
    await staff.enter()
    page = await staff.open(f"/desk/orders/{order['orderId']}")
    assert "Gift" in page.text
    assert "Refund Gift" not in page.text
    # An address that nothing links to starts with everything that can be refunded.
    page = await staff.open(f"/desk/orders/{order['orderId']}/refund?item=0")
    assert page.form("refund")[1]["amount"] == "50.00"


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("1.0", "1"), ("2.00", "2"), ("10", "10"), ("100.0", "100"), ("1e2", "100"), ("2.50", "2.5"), ("0.0", "0"), ("-0.0", "0"),
        ("-1.0", "-1"), ("123456789012345678", "123456789012345678"),
    ],
)  # fmt: skip
async def test_a_quantity_is_shown_without_needless_zeros(
    staff: Staff, visitor: Visitor, sent: str, shown: str
) -> None:
    back = {"redirectConfirmUrl": "http://127.0.0.1:9/c", "redirectCancelUrl": "http://127.0.0.1:9/x"}
    body = json.dumps({"amount": 50, "merchantReference": "A-1", "merchant": back})
    # The text is sent as it is, because the test's own JSON writer would drop the zeros.
    body = f'{body[:-1]}, "items": [{{"name": "Mug", "quantity": {sent}}}]}}'
    headers = {"content-type": "application/json"}
    order = (await staff.shop.http.post("/order", content=body, headers=headers)).json()
    await staff.enter()
    assert await in_checkout(visitor, order) == {"Mug": (shown, "")}
    assert await in_dashboard(staff, order) == {"Mug": (shown, "")}
