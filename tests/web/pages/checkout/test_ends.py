"""How a checkout ends: failing cards, risk, canceling, twenty clicks at once, fees, and unusual orders."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime, time, timedelta
from urllib.parse import parse_qs, urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from cuota.core.consumer import ZONES
from cuota.flows.checkout.leave_checkout import lapse_order
from support.makers import Merchant, Running
from support.pages.visitor import CARD_DECLINED, CARD_NO_FUNDS, Visitor, address_of, charges


@pytest.mark.parametrize(
    ("card", "reason"), [(CARD_DECLINED, "card_declined"), (CARD_NO_FUNDS, "insufficient_funds")]
)
async def test_after_a_declined_card_another_card_can_pay(
    service: Running, merchant: Merchant, visitor: Visitor, card: str, reason: str
) -> None:
    order = await merchant.create()
    page = await visitor.buy(order, card_number=card)
    assert (page.status, page.outcome) == (200, None)
    assert (
        "This card was declined by its bank. Try another card: your order is kept for 59 minutes."
        in page.text
    )
    assert (await merchant.read(order))["orderStatus"] == "Created"
    assert (await visitor.send("pay")).outcome == "approved"
    assert await charges(service, order) == [(2500, False, reason), (2500, True, None)]


async def test_the_third_declined_card_declines_the_order(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.buy(order, card_number=CARD_DECLINED)
    page = await visitor.send("pay", card_number=CARD_NO_FUNDS)
    assert "Try one more card" in page.text
    page = await visitor.send("pay", card_number=CARD_DECLINED)
    assert (page.outcome, "so nothing was paid" in page.text) == ("declined", True)
    assert (await merchant.read(order))["orderStatus"] == "Declined"
    assert [approved for _, approved, _ in await charges(service, order)] == [False] * 3
    back = urlsplit(page.link(f"Return to {merchant.name}"))
    assert (back.path, parse_qs(back.query)["orderId"]) == ("/cancel", [order["orderId"]])


async def test_risk_declines_an_order_before_any_card_is_charged(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    page = await visitor.buy(order, surname="Declinetest")
    assert (page.outcome, "Nothing was charged." in page.text) == ("declined", True)
    assert (await merchant.read(order))["orderStatus"] == "Declined"
    assert await charges(service, order) == []


async def test_the_test_name_approvetest_is_approved_at_the_highest_amount(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create("2000.00")
    assert (await visitor.buy(order, surname="Approvetest")).outcome == "approved"


@pytest.mark.parametrize("step", ["phone", "code", "details", "pay"])
async def test_leaving_at_any_step_abandons_the_order_and_redirects_to_the_merchant_s_cancel_address(
    merchant: Merchant, visitor: Visitor, step: str
) -> None:
    order = await merchant.create()
    await visitor.until(step, order)
    page = await visitor.send("leave")
    assert page.left == f"http://127.0.0.1:9/cancel?token={order['token']}&orderId={order['orderId']}"
    assert (await merchant.read(order))["orderStatus"] == "Abandoned"
    page = await visitor.open(address_of(order))
    assert (page.outcome, "Nothing was charged." in page.text) == ("abandoned", True)


@pytest.mark.parametrize(
    ("fields", "path", "at_most"),
    [({}, "/confirm", 0), ({"surname": "Declinetest"}, "/cancel", 3)],
    ids=["approved", "declined"],
)
async def test_the_last_page_goes_back_automatically_and_its_only_control_is_the_link(
    merchant: Merchant, visitor: Visitor, fields: dict[str, str], path: str, at_most: int
) -> None:
    order = await merchant.create()
    page = await visitor.buy(order, **fields)
    left = urlsplit(page.left or "")
    query = parse_qs(left.query)
    assert (left.path, query["token"], query["orderId"]) == (path, [order["token"]], [order["orderId"]])
    assert page.seconds is not None
    assert page.seconds <= at_most
    assert (page.seen.forms, list(page.seen.links)) == ([], [page.left])
    assert f"Taking you back to {merchant.name}" in page.text


async def test_the_page_of_an_expired_order_says_why_and_waits_for_a_click_on_the_link(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.until("details", order)
    async with service.clock.moved(minutes=61):
        await lapse_order(service.context, merchant.merchant_id, UUID(order["orderId"]))
        page = await visitor.open(address_of(order))
        assert "This checkout expired after 60 minutes. You were not charged." in page.text
        assert (page.left, urlsplit(page.link("Return to")).path) == (None, "/cancel")


async def test_twenty_presses_at_once_cause_one_approval_and_one_charge(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    page = await visitor.until("pay", order)
    action, held = page.form("pay")
    from support.pages.visitor import ANSWERS

    data = {**{name: ANSWERS.get(name, value) for name, value in held.items()}, "agree": "yes"}
    answers = await asyncio.gather(*(visitor.http.post(action, data=data) for _ in range(20)))
    places = {(answer.status_code, answer.headers["location"]) for answer in answers}
    assert places <= {(303, address_of(order)), (303, f"{address_of(order)}?said=asked")}
    assert (await visitor.open(address_of(order))).outcome == "approved"
    assert await charges(service, order) == [(2500, True, None)]
    sql = "SELECT type FROM events WHERE order_id = $1"
    events = Counter(row["type"] for row in await service.context.pool.fetch(sql, UUID(order["orderId"])))
    assert events["order.approved"] == 1


async def test_an_agreement_whose_dates_changed_overnight_is_shown_again_before_anything_is_charged(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    def until_midnight(state: str) -> timedelta:
        local = service.clock.now().astimezone(ZoneInfo(ZONES[state]))
        return datetime.combine(local.date() + timedelta(days=1), time(), local.tzinfo) - local

    # Use the state in which midnight comes next, so that the clock moves as little as possible.
    state = min(ZONES, key=lambda each: until_midnight(each) % timedelta(days=1))
    wait = until_midnight(state) - timedelta(minutes=10)
    async with service.clock.moved(seconds=wait.total_seconds()):
        order = await merchant.create()
        shown = await visitor.until("pay", order, state=state)
        async with service.clock.moved(minutes=20):
            page = await visitor.send("pay")
            assert page.status == 400
            assert (
                "Something in the agreement has changed since you opened this page. Please read it again."
                in page.text
            )
            assert page.form("pay")[1]["agreement_hash"] != shown.form("pay")[1]["agreement_hash"]
            assert await charges(service, order) == []
            assert (await visitor.send("pay")).outcome == "approved"


@pytest.mark.parametrize("consent", ["", "no", "YES"])
async def test_without_consent_nothing_is_charged(
    service: Running, merchant: Merchant, visitor: Visitor, consent: str
) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    page = await visitor.send("pay", agree=consent)
    assert (page.status, "Read the agreement and accept it to go on." in page.text) == (400, True)
    assert await charges(service, order) == []


async def test_the_consent_is_not_checked_in_advance(merchant: Merchant, visitor: Visitor) -> None:
    page = await visitor.until("pay", await merchant.create())
    assert "agree" not in page.form("pay")[1]


async def test_a_fee_is_shown_as_a_finance_charge_with_the_whole_truth_in_lending_box_before_the_consent(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create("100.00", merchantFeeForPaymentPlan="5.00")
    page = await visitor.until("pay", order)
    before, _, _ = page.text.partition("I have read and accept")
    for words in (
        "Annual percentage rate", "The cost of your credit as a yearly rate.", "Finance charge$5.00", "Finance charge $5.00",
        "Amount financed", "Total of payments", "Payment schedule",
    ):  # fmt: skip
        assert words in before, words
    assert "No interest" not in page.text
    assert "Pay $26.25 today" in page.text
    await visitor.send("pay")
    assert "You paid $26.25 today." in visitor.page.text


async def test_a_fee_is_shown_on_every_page_from_the_first_one(merchant: Merchant, visitor: Visitor) -> None:
    page = await visitor.open(
        (await merchant.create("100.00", merchantFeeForPaymentPlan="5.00"))["redirectUrl"]
    )
    assert "Finance charge $5.00" in page.text
    assert (
        page.text.count("Finance charge") == 1
    )  # the fee is shown with the plan, and not among the parts of the order's total
    assert "$26.25" in page.text
    assert "No interest" not in page.text


async def test_an_order_with_a_thousand_items_or_names_of_a_thousand_characters_is_shown_and_can_be_paid(
    merchant: Merchant, visitor: Visitor
) -> None:
    items = [{"name": f"Peg {n}", "quantity": 1, "price": "0.10"} for n in range(999)]
    items.append({"name": "W" * 1000, "sku": "s" * 100, "quantity": None, "price": None})
    order = await merchant.create("100.00", items=items)
    page = await visitor.open(order["redirectUrl"])
    assert ("Show 997 more items" in page.text, "W" * 1000 in page.text) == (True, True)
    assert (await visitor.buy(order)).outcome == "approved"


async def test_names_and_addresses_of_the_greatest_length_are_stored_completely(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    longest = {
        "given_names": "Ågåthå-Márie " + "x" * 37, "surname": "Ö" * 50, "email": "a" * 238 + "@a.example",
        "address_line1": "L" * 50, "address_line2": "M" * 50, "city": "C" * 50,
    }  # fmt: skip
    page = await visit().until("pay", await merchant.create(), **longest)
    for text in longest.values():
        assert text in page.text


async def test_a_name_with_combining_marks_is_a_valid_name(merchant: Merchant, visitor: Visitor) -> None:
    page = await visitor.until("pay", await merchant.create(), given_names="Zoe\u0308", surname="नमस्ते")
    assert "Zoe\u0308 नमस्ते" in page.text
