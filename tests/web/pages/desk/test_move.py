"""Tests of capture, void and refund in the merchant's dashboard."""

from __future__ import annotations

import asyncio
import re
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

import pyotp
import pytest

from cuota.core.desk.role import Role
from cuota.flows.context import utc_now
from support.makers import Merchant
from support.pages.staff import Staff
from support.pages.visitor import rows

ITEMS = [
    {"name": "Merino base layer", "price": "54.00", "quantity": 1},
    {"name": "Trail socks", "price": "23.00", "quantity": 2},
]


async def captured(shop: Merchant, amount: str = "100.00", **more: Any) -> dict[str, Any]:
    order = await shop.approved(amount, **more)
    assert (await shop.move(order, "capture", amount)).status_code == 200
    return order


def path(order: dict[str, Any], kind: str = "") -> str:
    return f"/desk/orders/{order['orderId']}{'/' if kind else ''}{kind}"


async def test_a_refund_of_one_item_takes_three_clicks_after_the_search(staff: Staff) -> None:
    order = await captured(staff.shop, items=ITEMS)
    await staff.enter(Role.SUPPORT)
    await staff.indexed()
    await staff._follow(await staff.http.get("/desk/orders", params={"q": "4242"}))
    await staff.open(staff.page.link("A-1042"))
    page = await staff.open(staff.page.link("Refund Trail socks"))
    assert "What will happen" in page.text
    assert "Refunded $0.00 $46.00" in page.text
    page = await staff.press("refund", reason="The socks came back.")
    assert "The refund is done." in page.text
    assert (await staff.shop.read(order))["refundedAmount"] == 46.0


async def test_nothing_moves_before_the_confirmation(staff: Staff) -> None:
    order = await captured(staff.shop)
    await staff.enter()
    before = await rows(staff.service, order)
    await staff.open(path(order, "refund"))
    await staff.open(path(order, "refund") + "?amount=12.50&reason=x")
    assert await rows(staff.service, order) == before


async def test_the_effect_is_shown_without_the_reason_or_the_form_s_token_in_the_address(
    staff: Staff,
) -> None:
    order = await captured(staff.shop)
    await staff.enter()
    await staff.open(path(order, "refund"))
    before = await rows(staff.service, order)
    page = await staff.press("refund", amount="12.50", reason="a note", look="yes")
    assert (page.status, str(page.answer.url).endswith(path(order, "refund"))) == (200, True)
    assert "Refunded $0.00 $12.50" in page.text
    assert "a note" in page.answer.text
    assert await rows(staff.service, order) == before


@pytest.mark.parametrize("typed", ["1,00", "5,0", "1,00.00"])
async def test_a_comma_that_separates_no_thousands_is_refused_and_moves_nothing(
    staff: Staff, typed: str
) -> None:
    order = await captured(staff.shop)
    await staff.enter()
    page = await staff.open(path(order, "refund") + f"?amount={typed}")
    assert "Enter an amount such as 12.50." in page.text
    page = await staff.press("refund", amount=typed, reason="x", previewed="10000")
    assert "Enter an amount such as 12.50." in page.text
    assert (await staff.shop.read(order))["refundedAmount"] == 0


@pytest.mark.parametrize("kind", ["capture", "void"])
async def test_capture_and_void_move_the_amount_that_the_page_has_shown(staff: Staff, kind: str) -> None:
    order = await staff.shop.approved("80.00")
    await staff.enter()
    page = await staff.open(path(order, kind) + "?amount=30.00")
    assert "$0.00 $30.00" in page.text
    await staff.press(kind, reason="shipped")
    total = {"capture": "capturedAmount", "void": "voidedAmount"}[kind]
    assert (await staff.shop.read(order))[total] == 30.0


async def test_a_changed_amount_is_shown_again_before_it_moves(staff: Staff) -> None:
    order = await captured(staff.shop)
    await staff.enter()
    await staff.open(path(order, "refund") + "?amount=10.00")
    page = await staff.press("refund", amount="90.00", reason="more")
    assert "The amount has changed" in page.text
    assert "$90.00" in page.text
    assert (await staff.shop.read(order))["refundedAmount"] == 0
    await staff.press("refund", reason="more")
    assert (await staff.shop.read(order))["refundedAmount"] == 90.0


async def test_a_second_click_moves_nothing_twice(staff: Staff) -> None:
    order = await captured(staff.shop)
    await staff.enter()
    await staff.open(path(order, "refund") + "?amount=10.00")
    action, fields = staff.page.form("refund")
    answers = await asyncio.gather(
        *(staff.http.post(action, data={**fields, "reason": "twice"}) for _ in range(5))
    )
    assert {answer.status_code for answer in answers} == {303}
    said = sorted(answer.headers["location"].rpartition("said=")[2] for answer in answers)
    assert said == ["before"] * 4 + ["refunded"]
    assert (await staff.shop.read(order))["refundedAmount"] == 10.0


async def test_a_reason_is_required(staff: Staff) -> None:
    order = await captured(staff.shop)
    await staff.enter()
    await staff.open(path(order, "refund"))
    page = await staff.press("refund", reason="  ")
    assert page.status == 400
    assert "Say why" in page.text
    assert (await staff.shop.read(order))["refundedAmount"] == 0


@pytest.mark.parametrize(
    "typed", ["", "0", "-5", "abc", "1.005", "1e3", "100.01", "9" * 30, "\uff11\uff10", "10,0.0x"]
)
async def test_a_wrong_amount_is_refused_with_an_explanation(staff: Staff, typed: str) -> None:
    order = await captured(staff.shop)
    await staff.enter()
    await staff.open(path(order, "refund"))
    page = await staff.press("refund", amount=typed, reason="try")
    assert page.status == 400
    assert "Error:" in page.text
    assert (await staff.shop.read(order))["refundedAmount"] == 0


async def test_a_movement_that_the_api_would_refuse_is_refused_here_too_and_is_in_the_audit_log(
    staff: Staff,
) -> None:
    order = await captured(staff.shop)
    await staff.enter()
    await staff.open(path(order, "refund") + "?amount=60.00")
    # In the meantime, a program refunds by the API.
    await staff.shop.move(order, "refund", "70.00")
    page = await staff.press("refund", reason="late")
    assert page.status == 400
    assert "Refund order" in page.heading
    assert (await staff.shop.read(order))["refundedAmount"] == 70.0
    page = await staff.open("/desk/audit")
    assert "order.refund.refused" in page.text


async def test_each_movement_is_in_the_audit_log_with_person_reason_and_reference(staff: Staff) -> None:
    order = await captured(staff.shop)
    await staff.enter(Role.OWNER)
    await staff.open(path(order, "refund") + "?amount=10.00")
    reference = staff.page.form("refund")[1]["reference"]
    await staff.press("refund", reason="The consumer called.")
    page = await staff.open("/desk/audit")
    for text in (
        "order.refund",
        "Refund $10.00",
        reference,
        "The consumer called.",
        "owner@sandbox.example",
        "refunded: 0.00 → 10.00",
    ):
        assert text in page.text, text
    (moved,) = await staff.service.context.pool.fetch(
        "SELECT reference FROM movements WHERE order_id = $1 AND kind = 'refund'", UUID(order["orderId"])
    )
    assert moved["reference"] == reference


async def test_a_large_refund_requires_a_fresh_code(staff: Staff) -> None:
    order = await captured(staff.shop, "600.00")
    person = await staff.invited("large@shop.example")
    await staff.sign_in(person)
    await staff.service.context.pool.fetch(
        "UPDATE desk_sessions SET proved_at = $1 WHERE person_id = $2",
        utc_now() - timedelta(minutes=6),
        person.person_id,
    )
    await staff.open(path(order, "refund"))
    assert "Code of your authenticator app" in staff.page.text
    for wrong in ("", "000000"):
        page = await staff.press("refund", reason="all of it", code=wrong)
        assert page.status == 400
    assert (await staff.shop.read(order))["refundedAmount"] == 0
    right = pyotp.TOTP(staff.key).at(int(time.time()) + 30)
    page = await staff.press("refund", reason="all of it", code=right)
    assert "The refund is done." in page.text
    # A small refund needs no code.
    small = await captured(staff.shop, "20.00")
    await staff.service.context.pool.fetch(
        "UPDATE desk_sessions SET proved_at = $1 WHERE person_id = $2",
        utc_now() - timedelta(minutes=6),
        person.person_id,
    )
    page = await staff.open(path(small, "refund"))
    assert "Code of your authenticator app" not in page.text
    assert "done" in (await staff.press("refund", reason="small")).text


async def test_an_order_with_nothing_left_says_so(staff: Staff) -> None:
    order = await staff.shop.create("20.00")
    await staff.enter()
    for kind in ("capture", "void", "refund"):
        page = await staff.open(path(order, kind))
        assert f"Nothing is left to {kind}" in page.text


async def test_another_merchants_order_cannot_be_moved(staff: Staff, auto_merchant: Merchant) -> None:
    order = await auto_merchant.approved("40.00")
    own = await captured(staff.shop)
    await staff.enter()
    assert (await staff.open(path(order, "refund"))).status == 404
    await staff.open(path(own, "refund"))
    _, fields = staff.page.form("refund")
    answer = await staff.http.post(path(order, "refund"), data={**fields, "reason": "theft"})
    assert answer.status_code == 404
    assert (await auto_merchant.read(order))["refundedAmount"] == 0


async def test_a_reference_that_the_page_did_not_make_is_replaced(staff: Staff) -> None:
    order = await captured(staff.shop)
    await staff.enter()
    await staff.open(path(order, "refund"))
    for wrong in ("", "mine", "desk-" + "g" * 12, "desk-" + "0" * 200):
        page = await staff.press("refund", reference=wrong, reason="own")
        assert page.status == 200
        assert re.fullmatch("desk-[0-9a-f]{12}", page.form("refund")[1]["reference"])
    assert (await staff.shop.read(order))["refundedAmount"] == 0
