"""The steps of the checkout, one by one, without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest

from cuota.core.consumer import typed_number
from cuota.rails import inbox
from support.makers import Merchant, Running
from support.pages.visitor import Visitor, address_of, charges, rows


async def test_a_consumer_pays_in_four_steps_and_returns_to_the_merchant(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create("100.00")
    page = await visitor.buy(order)
    assert (page.status, page.outcome, page.heading) == (200, "approved", "Your order is confirmed")
    assert "You paid $25.00 today. Your next payment is $25.00 on" in page.text
    assert (await merchant.read(order))["orderStatus"] == "Approved"
    assert await charges(service, order) == [(2500, True, None)]
    back = urlsplit(page.link(f"Back to {merchant.name}"))
    assert f"{back.scheme}://{back.netloc}{back.path}" == "http://127.0.0.1:9/confirm"
    assert parse_qs(back.query) == {"order": ["7"], "token": [order["token"]], "orderId": [order["orderId"]]}


async def test_every_step_shows_its_number_the_merchant_and_the_total(
    merchant: Merchant, visitor: Visitor
) -> None:
    await visitor.open((await merchant.create("100.00"))["redirectUrl"])
    for number, step in enumerate(("phone", "code", "details", "pay"), start=1):
        page = visitor.page
        assert f"Step {number} of 4" in page.text
        assert merchant.name in page.text
        assert "Order total$100.00" in page.text
        assert page.form("leave")
        await visitor.send(step)


async def test_the_first_page_shows_four_payments_with_their_amounts_and_dates(
    merchant: Merchant, visitor: Visitor
) -> None:
    page = await visitor.open((await merchant.create("100.03"))["redirectUrl"])
    assert re.findall(r"\$2\d\.\d\d", page.text) == ["$25.01", "$25.01", "$25.01", "$25.00"]
    assert len(re.findall(r'<time datetime="\d{4}-\d\d-\d\d">', page.answer.text)) == 4
    assert "No interest, no fees" in page.text


async def test_the_back_link_shows_an_earlier_step_with_the_entered_data(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    page = await visitor.open(f"{address_of(order)}?step=details")
    assert page.form("details")[1]["surname"] == "Rivera"
    page = await visitor.send("details", city="Oakland")
    assert page.form("pay")
    assert "Oakland, CA 94103" in page.text


async def test_the_address_of_a_later_step_shows_the_current_step(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.open(order["redirectUrl"])
    for step in ("code", "details", "pay", "nonsense", "<script>"):
        assert (await visitor.open(f"{address_of(order)}?step={step}")).form("phone")


async def test_a_number_that_is_changed_later_needs_a_new_code(merchant: Merchant, visitor: Visitor) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    await visitor.open(f"{address_of(order)}?step=phone")
    page = await visitor.send("phone", phone="312 555 0143")
    assert page.form("code")
    assert "Jordan" not in page.answer.text
    page = await visitor.send("code")
    assert page.form("details")[1]["surname"] == ""


async def test_reloading_shows_the_same_page_and_changes_nothing(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.open(order["redirectUrl"])
    for step in ("phone", "code", "details", "pay"):
        shown = visitor.page
        before = await rows(service, order)
        again = await visitor.open(address_of(order))
        assert (again.status, again.heading) == (200, shown.heading)
        assert await rows(service, order) == before
        await visitor.send(step)


async def test_a_second_tab_of_the_same_browser_continues_at_the_same_step(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    assert (await visitor.open(order["redirectUrl"])).form("pay")


async def test_an_older_tab_shows_the_outcome_of_the_newer_one(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    stale = await visitor.until("pay", order)
    await visitor.send("pay")
    visitor.page = stale
    assert (await visitor.send("pay")).outcome == "approved"
    visitor.page = stale
    assert (await visitor.send("leave")).outcome == "approved"
    assert len(await charges(service, order)) == 1


async def test_another_browser_with_the_same_link_starts_at_the_first_step_and_sees_no_personal_data(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    order = await merchant.create()
    await visit().until("pay", order)
    other = visit()
    page = await other.open(order["redirectUrl"])
    assert page.form("phone")[1]["phone"] == ""
    assert not re.search(r"Jordan|Rivera|Mission|0187|jordan@", page.answer.text)


@pytest.mark.parametrize("step", ["code", "resend", "details", "pay"])
async def test_a_form_of_a_later_step_is_answered_with_409_and_the_current_step(
    service: Running, merchant: Merchant, visitor: Visitor, step: str
) -> None:
    order = await merchant.create()
    await visitor.open(order["redirectUrl"])
    csrf = visitor.page.form("phone")[1]["csrf"]
    before = await rows(service, order)
    page = await visitor._follow(
        await visitor.http.post(
            f"{address_of(order)}/{step}", data={"csrf": csrf, "code": "123456", "agree": "yes"}
        )
    )
    assert (page.status, page.form("phone")[1]["phone"]) == (409, "")
    assert "This step comes later." in page.text
    assert await rows(service, order) == before


@pytest.mark.parametrize(
    "phone", ["", "212555018", "112 555 0187", "212 155 0187", "+44 20 7946 0958", "٢١٢٥٥٥٠١٨", "x" * 300]
)
async def test_after_a_wrong_number_the_page_asks_again_and_shows_the_typed_text(
    merchant: Merchant, visitor: Visitor, phone: str
) -> None:
    await visitor.open((await merchant.create())["redirectUrl"])
    page = await visitor.send("phone", phone=phone)
    assert (page.status, page.form("phone")[1]["phone"]) == (400, phone)
    assert "Enter a US mobile number of ten digits, area code first." in page.text


@pytest.mark.parametrize("phone", ["(900) 555-0187", "8885550187", "416 555 0187", "+1 876 555 0187"])
async def test_a_number_that_is_no_us_mobile_number_gets_no_code(
    merchant: Merchant, visitor: Visitor, service: Running, phone: str
) -> None:
    await visitor.open((await merchant.create())["redirectUrl"])
    page = await visitor.send("phone", phone=phone)
    assert (page.status, page.form("phone")[1]["phone"]) == (400, phone)
    number = typed_number(phone)
    assert f"Enter a US mobile number. No US mobile number has the area code {number[:3]}." in page.text
    assert await inbox.look(service.context.pool, to=number) == []


async def test_all_errors_in_the_details_are_shown_at_once_and_the_typed_text_is_kept(
    merchant: Merchant, visitor: Visitor
) -> None:
    await visitor.until("details", await merchant.create())
    page = await visitor.send(
        "details", surname="R2", email="jordan@", state="ZZ", postcode="9410", city="San Francisco"
    )
    assert page.status == 400
    assert "Please check 4 things" in page.text
    assert {name: page.form("details")[1][name] for name in ("surname", "email", "city")} == {
        "surname": "R2", "email": "jordan@", "city": "San Francisco",
    }  # fmt: skip


async def test_the_summary_lists_errors_in_the_order_of_the_fields(
    merchant: Merchant, visitor: Visitor
) -> None:
    await visitor.until("details", await merchant.create())
    page = await visitor.send("details", **dict.fromkeys(DETAILS_ASKED, ""))
    assert re.findall(r'<a href="#(\w+)">', page.answer.text) == list(DETAILS_ASKED)


DETAILS_ASKED = ("given_names", "surname", "email", "address_line1", "city", "state", "postcode")


async def test_after_a_mistyped_card_the_page_asks_again_and_shows_only_the_expiration_date(
    merchant: Merchant, visitor: Visitor
) -> None:
    await visitor.until("pay", await merchant.create())
    page = await visitor.send(
        "pay", card_number="4242 4242 4242 4241", card_expiry="01/20", card_cvc="73", agree=""
    )
    assert (page.status, "Please check 4 things" in page.text) == (400, True)
    held = page.form("pay")[1]
    assert (held["card_number"], held["card_expiry"], held["card_cvc"]) == ("", "01/20", "")
    assert "4241" not in page.answer.text


async def test_a_known_consumer_s_details_are_filled_in_once_the_code_is_right(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    number = "646 555 0119"
    await visit().buy(await merchant.create(), phone=number)
    page = await visit().until("details", await merchant.create(), phone=number)
    assert page.form("details")[1]["address_line1"] == "1480 Mission Street"


async def test_an_expired_order_answers_410_with_a_link_back_and_nothing_is_charged(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    stale = await visitor.until("pay", order)
    async with service.clock.moved(minutes=61):
        visitor.page = stale
        page = await visitor.send("pay")
        assert (page.status, page.heading) == (410, "This checkout expired")
        assert urlsplit(page.link(f"Back to {merchant.name}")).path == "/cancel"
    assert await charges(service, order) == []
    events = await service.context.pool.fetch(
        "SELECT type FROM events WHERE order_id = $1", UUID(order["orderId"])
    )
    assert "order.approved" not in {row["type"] for row in events}
