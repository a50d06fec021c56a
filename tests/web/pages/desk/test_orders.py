"""Finding orders in the merchant's dashboard, and the page of one order."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.order.event import EVENT_TYPES, EventSubject
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.core.plan.hardship import SmallerPayments
from cuota.db.desk import orders as listing
from cuota.flows.order.void_order import void_order
from cuota.flows.plan.change_plan import agree_on_change, preview_change
from cuota.flows.privacy.erase_consumer import erase_consumer
from cuota.web.pages.desk import orders
from cuota.web.pages.desk.order_view import EVENT_WORDS
from support.makers import PROFILE, Merchant, complete
from support.pages.staff import Staff
from support.phones import phone_number


async def order_of(shop: Merchant, name: str = "Ana", surname: str = "Silva", **more: Any) -> dict[str, Any]:
    """Make an approved order of a person with this name."""
    order = await shop.create("100.00", **more)
    await complete(
        shop.service,
        shop.merchant_id,
        order,
        profile=replace(PROFILE, given_names=name, surname=surname),
        phone=phone_number(),
    )
    return order


def listed(staff: Staff) -> list[str]:
    """Return the ids of the orders on the page, in their order."""
    return [
        href.rpartition("/")[2]
        for href in staff.page.seen.links
        if href.startswith("/desk/orders/0") and "?" not in href
    ]


async def search(staff: Staff, q: str, **more: str) -> list[str]:
    answer = await staff.http.get("/desk/orders", params={"q": q, **more})
    await staff._follow(answer)
    assert staff.page.status == 200
    return listed(staff)


async def test_an_order_is_found_by_everything_that_a_person_may_know_about_it(staff: Staff) -> None:
    name = f"Nu{secrets.token_hex(3).translate(str.maketrans('0123456789', 'ghijklmnop'))}"
    reference = f"web-{secrets.token_hex(4)}"
    number = phone_number()
    order = await staff.shop.create("87.31", merchantReference=reference)
    person = replace(PROFILE, given_names="José", surname=name, email=f"{name}@mail.example")
    await complete(staff.service, staff.shop.merchant_id, order, profile=person, phone=number)
    await staff.shop.approved("100.00")
    await staff.enter()
    await staff.indexed()
    pretty = f"({number[:3]}) {number[3:6]}-{number[6:]}"
    asked = [
        reference, order["orderId"], order["orderId"].upper(), order["token"], f"JOSE {name}", name, name.upper(),
        f"{name}@MAIL.example", number, pretty, f"+1 {number}", "87.31", "$87.31",
    ]  # fmt: skip
    for text in asked:
        assert await search(staff, text) == [order["orderId"]], text
    assert order["orderId"] in await search(staff, "4242")
    assert await search(staff, "nobody at all") == []
    assert "No order matches" in staff.page.text


async def test_another_merchants_order_is_never_found(staff: Staff, auto_merchant: Merchant) -> None:
    order = await auto_merchant.approved("61.77")
    await staff.enter()
    await staff.indexed()
    for text in ("61.77", order["orderId"], order["token"]):
        assert await search(staff, text) == []
    assert (await staff.open(f"/desk/orders/{order['orderId']}")).status == 404


async def test_an_erased_consumer_is_no_longer_found(staff: Staff) -> None:
    number = phone_number()
    order = await staff.shop.create("50.00")
    person = replace(PROFILE, surname="Erasmus")
    await complete(staff.service, staff.shop.merchant_id, order, profile=person, phone=number)
    await staff.enter()
    await staff.indexed()
    assert await search(staff, number) == [order["orderId"]]
    context = staff.service.context
    asked = MovementRequest(MovementKind.VOID, "all", 5000)
    await void_order(context, staff.shop.merchant_id, UUID(order["orderId"]), asked)
    done = await erase_consumer(context, number, dry_run=False, refunds_settled=True)
    if not done.done:
        await context.pool.fetch(
            "UPDATE card_refunds SET state = 'succeeded', try_at = NULL, settled_at = now() WHERE order_id = $1",
            UUID(order["orderId"]),
        )
        done = await erase_consumer(context, number, dry_run=False, refunds_settled=True)
    assert done.done, done.reasons
    await staff.indexed()
    assert await search(staff, number) == []
    assert await search(staff, "Erasmus") == []


async def test_the_list_is_newest_first_in_pages_that_do_not_shift(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "A_PAGE", 2)
    made = [(await staff.shop.create())["orderId"] for _ in range(5)]
    await staff.enter()
    await staff.open("/desk/orders")
    seen = listed(staff)
    await staff.shop.create()
    while next_page := next(
        (href for href, text in staff.page.seen.links.items() if "Next page" in text), None
    ):
        await staff.open(next_page)
        seen += listed(staff)
    assert seen == made[::-1]
    await staff.open("/desk/orders?sort=oldest")
    assert listed(staff) == made[:2]


async def test_the_filters_show_only_what_they_name(staff: Staff) -> None:
    bought, left = await staff.shop.approved("30.00"), await staff.shop.create("40.00")
    done = await staff.shop.approved("50.00")
    await staff.shop.move(done, "capture", "50.00")
    await staff.shop.move(done, "refund", "10.00")
    await staff.enter()
    views = {
        "all": {bought["orderId"], left["orderId"], done["orderId"]},
        "to-capture": {bought["orderId"]},
        "approved": {bought["orderId"], done["orderId"]},
        "refunded": {done["orderId"]},
        "in-checkout": {left["orderId"]},
        "declined": set(),
        "disputed": set(),
        "abandoned": set(),
    }
    for view, expected in views.items():
        await staff.open(f"/desk/orders?view={view}")
        assert set(listed(staff)) == expected, view
    today = staff.service.context.now()
    for query, count in (
        (f"from={today - timedelta(days=2):%Y-%m-%d}", 3),
        (f"from={today + timedelta(days=2):%Y-%m-%d}", 0),
        (f"to={today - timedelta(days=2):%Y-%m-%d}", 0),
        (f"to={today + timedelta(days=2):%Y-%m-%d}", 3),
    ):
        await staff.open(f"/desk/orders?{query}")
        assert len(listed(staff)) == count, query


async def test_a_page_without_a_match_offers_to_search_older_orders(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "SCANNED", 3)
    first = await staff.shop.approved()
    for _ in range(4):
        await staff.shop.create()
    await staff.enter()
    page = await staff.open("/desk/orders?view=approved")
    assert listed(staff) == []
    assert "Older ones have not been searched yet" in page.text
    await staff.open(page.link("Look further back"))
    assert listed(staff) == [first["orderId"]]


async def test_the_line_above_the_list_says_what_is_filtered_and_an_empty_list_names_the_way_out(
    staff: Staff,
) -> None:
    await staff.shop.create()
    await staff.enter()
    page = await staff.open("/desk/orders?from=2020-02-03&to=2020-02-04")
    assert "0 rows: all orders, from Mon, Feb 3, 2020, to Tue, Feb 4, 2020." in page.text
    assert "No order matches. Clear the filters" in page.text
    page = await staff.open("/desk/orders?from=2020-02-03")
    assert "1 row: all orders, from Mon, Feb 3, 2020. Clear the filters · Export as CSV" in page.text
    assert "Check the spelling" in (await staff.open("/desk/orders?q=nobody")).text


@pytest.mark.parametrize(
    "query",
    [
        "view=nothing", "from=yesterday", "from=2026-02-30", "to=9999-12-31", "from=0001-01-01", "after=nonsense", "sort=up",
        "q=%00", "q=%27%3B--", "q=" + "x" * 3000, "q=%25_%5C", "q=1e99", "q=-5", "q=0", "q=99999999999999999.99",
    ],
)  # fmt: skip
async def test_an_address_of_the_list_with_wrong_parameters_still_shows_a_list(
    staff: Staff, query: str
) -> None:
    await staff.enter()
    assert (await staff.open(f"/desk/orders?{query}")).status == 200


async def test_the_page_of_an_order_shows_its_money_its_plan_its_items_and_its_history(staff: Staff) -> None:
    items = [
        {"name": "Merino base layer", "price": "54.00", "quantity": 1},
        {"name": "Trail socks", "price": "23.00", "quantity": 2},
    ]
    order = await order_of(staff.shop, items=items, merchantReference="web-1001")
    await staff.shop.move(order, "capture", "100.00")
    await staff.enter()
    page = await staff.open(f"/desk/orders/{order['orderId']}")
    for text in (
        "Order web-1001",
        "Ana Silva",
        "$100.00",
        "Merino base layer",
        "$46.00",
        "1 of 4",
        "Paid",
        "Scheduled",
        "Captured",
        "4242",
    ):
        assert text in page.text, text


async def test_the_page_of_an_order_counts_the_smaller_payments_of_a_plan_changed_in_hardship(
    staff: Staff,
) -> None:
    order, context = await order_of(staff.shop), staff.service.context
    await staff.shop.move(order, "capture", "100.00")
    ids = staff.shop.merchant_id, UUID(order["orderId"])
    request = SmallerPayments(6, 14, context.now().date() + timedelta(days=16))
    mark = (await preview_change(context, *ids, request)).found.before.mark
    await agree_on_change(context, *ids, request, by="Ana", reason="Lost her job", mark=mark)
    await staff.enter()
    page = await staff.open(f"/desk/orders/{order['orderId']}")
    assert "1 of 7" in page.text
    assert "7 of 7" in page.text


def test_every_event_of_an_order_has_a_text() -> None:
    assert {each.name for each in EVENT_TYPES if each.about is EventSubject.ORDER} == set(EVENT_WORDS)


@pytest.mark.parametrize(
    "order_id", ["5b547851-60cf-4069-9f33-408299cc1122", "nonsense", "0", "%00", "..%2f"]
)
async def test_an_order_that_does_not_exist_is_not_found(staff: Staff, order_id: str) -> None:
    await staff.enter()
    assert (await staff.open(f"/desk/orders/{order_id}")).status == 404


async def test_hostile_names_are_shown_as_text(staff: Staff) -> None:
    order = await staff.shop.create(
        "20.00",
        description="<script>alert(1)</script>",
        items=[{"name": "<img src=x onerror=alert(1)>", "price": "20.00", "quantity": 1}],
    )
    await staff.enter()
    page = await staff.open(f"/desk/orders/{order['orderId']}")
    assert "<img src=x" not in page.answer.text
    assert "&lt;img src=x" in page.answer.text


async def test_the_numbers_on_the_first_page_equal_those_of_its_lists(staff: Staff) -> None:
    await staff.shop.approved("30.00")
    done = await staff.shop.approved("50.00")
    await staff.shop.move(done, "capture", "50.00")
    await staff.enter()
    text = staff.page.text
    assert "Orders today 2 2 approved, $80.00" in text
    assert "To capture $30.00 1 order;" in text
    assert "Approval rate 100 %" in text


async def test_an_order_without_a_reference_can_be_opened_from_the_list(staff: Staff) -> None:
    await staff.shop.approved("30.00", merchantReference="")
    await staff.enter()
    await staff.open("/desk/orders")
    page = await staff.open(staff.page.link("no reference"))
    assert page.heading == "Order without a reference"
