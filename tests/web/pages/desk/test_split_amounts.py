"""A large amount cannot be moved in parts to avoid the second person of the merchant's team."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from cuota.core.desk.role import Role
from cuota.db.desk import approvals, audit
from support.makers import Merchant
from support.pages.second_person import captured, second_person_above
from support.pages.staff import Staff


@pytest.fixture(autouse=True)
def limit(merchant: Merchant) -> Iterator[None]:
    """Movements of more than $50.00 need a second person."""
    with second_person_above(merchant, 5000):
        yield


async def test_an_amount_that_is_split_needs_a_second_person(
    staff: Staff, browser: Callable[..., Staff]
) -> None:
    order = await staff.shop.approved()
    await staff.enter(Role.SUPPORT)
    path = f"/desk/orders/{order['orderId']}/capture"
    await staff.open(f"{path}?amount=30.00")
    assert "The capture is done" in (await staff.press("capture", reason="the first half")).text
    page = await staff.open(f"{path}?amount=20.01")
    assert "needs a second person" in page.text
    page = await staff.press("capture", reason="the second half")
    assert "Your request was received" in page.text
    assert await captured(staff, order) == 3000
    # Up to the limit, and after the approval of the rest, the person needs nobody.
    other = browser()
    await other.enter()
    (waiting, *_) = await approvals.newest(staff.service.context.pool, staff.shop.merchant_id, 1)
    await other.open(f"/desk/approvals/{waiting.approval_id}")
    assert "The capture is done" in (await other.press(str(waiting.approval_id), do="approve")).text
    await staff.open(f"{path}?amount=20.00")
    assert "The capture is done" in (await staff.press("capture", reason="the rest")).text
    assert await captured(staff, order) == 7001


async def test_parts_that_are_sent_at_the_same_moment_are_added_up(staff: Staff) -> None:
    order = await staff.shop.approved()
    await staff.enter(Role.SUPPORT)
    forms = []
    for _ in range(6):
        await staff.open(f"/desk/orders/{order['orderId']}/capture?amount=15.00")
        action, held = staff.page.form("capture")
        forms.append({**held, "reason": "in parts"})
    answers = await asyncio.gather(*(staff.http.post(action, data=form) for form in forms))
    asked_for = [each.headers["location"] == "/desk/approvals?said=asked" for each in answers]
    assert asked_for.count(True) == 3
    assert await captured(staff, order) == 4500


async def test_the_parts_of_another_order_another_kind_and_another_day_do_not_count(staff: Staff) -> None:
    order, another = await staff.shop.approved(), await staff.shop.approved()
    await staff.enter(Role.SUPPORT)
    parts = [(order, "capture"), (another, "capture"), (order, "void")]
    for each, kind in parts:
        await staff.open(f"/desk/orders/{each['orderId']}/{kind}?amount=30.00")
        assert f"The {kind} is done" in (await staff.press(kind, reason="a part")).text
    async with staff.service.clock.moved(days=1):
        await staff.open(f"/desk/orders/{order['orderId']}/capture?amount=30.00")
        assert "The capture is done" in (await staff.press("capture", reason="the next day")).text


async def test_a_double_click_counts_once(staff: Staff) -> None:
    order = await staff.shop.approved()
    await staff.enter(Role.SUPPORT)
    path = f"/desk/orders/{order['orderId']}/capture"
    await staff.open(f"{path}?amount=20.00")
    action, held = staff.page.form("capture")
    form = {**held, "reason": "a double click"}
    pool = staff.service.context.pool
    async with pool.session() as session, session.transaction():
        # Both clicks write their entry, and then wait for the order.
        locks = "SELECT 1 FROM orders WHERE merchant_id = $1 AND order_id = $2 FOR UPDATE"
        await session.fetch(locks, staff.shop.merchant_id, UUID(order["orderId"]))
        clicks = [asyncio.ensure_future(staff.http.post(action, data=form)) for _ in range(2)]
        while len(await audit.of_order(pool, staff.shop.merchant_id, UUID(order["orderId"]), 10)) < 2:
            assert not any(each.done() for each in clicks)
            await asyncio.sleep(0.01)
    assert [(await each).status_code for each in clicks] == [303, 303]
    assert await captured(staff, order) == 2000
    page = await staff.open(f"{path}?amount=30.00")
    assert "needs a second person" not in page.text
    assert "The capture is done" in (await staff.press("capture", reason="up to the limit")).text
    assert "needs a second person" in (await staff.open(f"{path}?amount=0.01")).text
