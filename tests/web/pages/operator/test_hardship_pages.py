"""The operator's pages for a consumer in hardship, for a block, and for the messages that were sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from cuota.core.operator.role import OperatorRole
from cuota.core.order.id_bounds import BEYOND
from cuota.db.operator import operator_log
from cuota.db.plan import plans
from cuota.db.verify.recalculate import verify
from cuota.flows.plan.send_messages import send_messages
from support.makers import PROFILE, Merchant, complete
from support.pages.operator_staff import OperatorStaff
from support.phones import phone_number

CALLED = "lost the job, called today"


async def with_plan(merchant: Merchant, fee: str = "0.00") -> tuple[str, dict[str, Any]]:
    """Make a consumer with a plan. Return the path of the order's page, and the order."""
    order = await merchant.create("100.00", merchantFeeForPaymentPlan=fee)
    await complete(merchant.service, merchant.merchant_id, order, phone=phone_number())
    return f"/operator/orders/{order['orderId']}", order


async def logged(operator: OperatorStaff, about: UUID) -> list[str]:
    found = await operator_log.page(operator.service.context.pool, BEYOND, 50, about=about)
    return [each.action for each in found]


async def days(merchant: Merchant, order: dict[str, Any]) -> list[Any]:
    found = await plans.read(merchant.service.context.pool, merchant.merchant_id, UUID(order["orderId"]))
    assert found is not None
    return [item.due_on for item in found.plan]


async def test_the_page_shows_a_pause_before_and_after_and_makes_it_with_a_reason(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    path, order = await with_plan(merchant)
    before = await days(merchant, order)
    await operator.enter(OperatorRole.SUPPORT)
    page = await operator.open(path)
    assert f"{path}/hardship" in page.seen.links
    page = await operator.open(f"{path}/hardship?kind=paused&pause=14")
    assert "Your payments pause for 14 days." in page.text
    assert await days(merchant, order) == before, "a preview changes nothing"
    page = await operator.press("hardship", reason="")
    assert (page.status, await days(merchant, order)) == (400, before)
    page = await operator.press("hardship", reason=CALLED)
    assert "The plan is changed" in page.text
    assert CALLED in page.text
    assert (await days(merchant, order))[1:] == [day + timedelta(days=14) for day in before[1:]]
    assert await logged(operator, UUID(order["orderId"])) == ["plan.change"]


async def test_smaller_payments_moved_dates_and_a_waived_fee_are_made_on_the_page(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    path, order = await with_plan(merchant, fee="4.00")
    due = await days(merchant, order)
    await operator.enter(OperatorRole.SUPPORT)
    for query in (
        f"kind=smaller_payments&payments=6&every=14&first={due[1]}",
        f"kind=dates_moved&day_7={due[1] + timedelta(days=14 * 5 + 10)}",
        "kind=fee_waived&waive=1.50",
    ):
        page = await operator.open(f"{path}/hardship?{query}")
        assert page.status == 200, page.text
        assert "The plan is changed" in (await operator.press("hardship", reason=CALLED)).text
    page = await operator.open(f"{path}/hardship")
    for word in ("Smaller payments", "Dates moved", "Fee waived", "$1.50 used"):
        assert word in page.text
    # Other tests alter the rows of their own orders in this database.
    found = (await verify(merchant.service.context.pool)).disagreements
    assert [each for each in found if str(each.order_id) == order["orderId"]] == []


async def test_a_second_click_and_a_second_person_are_told_that_the_plan_has_changed(
    desk_browser: Callable[..., OperatorStaff], merchant: Merchant
) -> None:
    path, _ = await with_plan(merchant)
    two = [desk_browser(), desk_browser()]
    for number, one in enumerate(two):
        await one.enter(OperatorRole.SUPPORT)
        await one.open(f"{path}/hardship?kind=paused&pause={7 + number}")
    pages = await asyncio.gather(*(one.press("hardship", reason=CALLED) for one in two))
    assert sorted(page.status for page in pages) == [200, 400]
    assert "The plan has changed since you looked at it" in next(
        page.text for page in pages if page.status == 400
    )
    winner = two[[page.status for page in pages].index(200)]
    await winner.open(f"{path}/hardship?kind=paused&pause=3")
    action, held = winner.page.form("hardship")
    twice = [await winner.http.post(action, data={**held, "reason": CALLED}) for _ in range(2)]
    assert [answer.status_code for answer in twice] == [303, 400]


async def test_every_role_is_refused_what_the_policy_does_not_allow(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    path, order = await with_plan(merchant)
    before = await days(merchant, order)
    await operator.enter(OperatorRole.OWNER)
    for query, words in (
        ("kind=paused&pause=61", "at most 60 days"),
        ("kind=paused&pause=x", "Enter a number of days"),
        ("kind=paused&pause=-1", "Enter a number of days"),
        (f"kind=dates_moved&day_4={before[3] + timedelta(days=31)}", "at most 30 days"),
        ("kind=dates_moved&day_4=soon", "Enter a day"),
        ("kind=dates_moved", "at least one payment"),
        (f"kind=smaller_payments&payments=13&every=14&first={before[1]}", "at most 12"),
        ("kind=smaller_payments&payments=6&every=14&first=", "Enter a day"),
        ("kind=fee_waived&waive=1.00", "Nothing is left to pay of the fee"),
    ):
        page = await operator.open(f"{path}/hardship?{query}")
        assert (page.status, words in page.text) == (400, True), query
    # A form that is sent without the page is refused in the same way.
    await operator.open(f"{path}/hardship?kind=paused&pause=14")
    page = await operator.press("hardship", reason=CALLED, pause="61")
    assert (page.status, "at most 60 days" in page.text) == (400, True)
    assert await days(merchant, order) == before
    assert await logged(operator, UUID(order["orderId"])) == []


async def test_hostile_input_is_refused_with_an_explanation(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    path, order = await with_plan(merchant, fee="4.00")
    before = await days(merchant, order)
    await operator.enter(OperatorRole.SUPPORT)
    for query in (
        "kind=paused&pause=%D9%A3", "kind=paused&pause=99999999999999999999", "kind=paused&pause=%00", "kind=paused",
        "kind=dates_moved&day_2=9999-12-31", "kind=dates_moved&day_2=0001-01-01", "kind=dates_moved&day_2=%00%FF",
        "kind=smaller_payments&payments=0&every=0&first=9999-12-31", "kind=smaller_payments&payments=6&every=31&first=9999-12-31",
        "kind=smaller_payments&payments=6&every=9999&first=2026-12-31", "kind=fee_waived&waive=1e2", "kind=fee_waived&waive=-1",
        "kind=fee_waived&waive=0.001", "kind=fee_waived&waive=NaN", "kind=fee_waived&waive=99999999999999999999.00",
    ):  # fmt: skip
        assert (await operator.open(f"{path}/hardship?{query}")).status == 400, query
    assert (await operator.open(f"{path}/hardship?kind=%3Cscript%3E")).status == 200
    await operator.open(f"{path}/hardship?kind=paused&pause=7")
    page = await operator.press("hardship", reason="<script>", kind="nothing")
    assert (page.status, "Choose what to change." in page.text) == (400, True)
    assert await days(merchant, order) == before


async def test_a_block_has_a_kind_and_a_reason_and_can_be_ended(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    phone = phone_number()
    order = await merchant.create("100.00")
    await complete(merchant.service, merchant.merchant_id, order, phone=phone)
    consumer_id = merchant.service.context.vault.consumer_id(phone)
    await operator.enter(OperatorRole.RISK)
    await operator.open(f"/operator/consumers/{consumer_id}")
    assert (await operator.press("block", do="block", kind="", reason="odd")).status == 400
    page = await operator.press("block", do="block", kind="misuse", reason="")
    assert (page.status, "Say why" in page.text) == (400, True)
    page = await operator.press("block", do="block", kind="misuse", until="1999-01-01", reason="stolen phone")
    assert page.status == 400
    page = await operator.press("block", do="block", kind="misuse", until="2090-01-01", reason="stolen phone")
    assert "The consumer is blocked" in page.text
    assert "stolen phone" in page.text
    page = await operator.press("block", do="unblock", reason="has the phone back")
    assert "The block has ended" in page.text
    assert (await logged(operator, consumer_id))[:2] == ["consumer.unblock", "consumer.block"]


async def test_messages_are_masked_until_a_person_with_the_right_reveals_them(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    phone = phone_number()
    order = await merchant.create("100.00")
    await complete(merchant.service, merchant.merchant_id, order, phone=phone)
    blocked = await merchant.create("100.00")
    await operator.enter(OperatorRole.RISK)
    consumer_id = merchant.service.context.vault.consumer_id(phone)
    path = f"/operator/consumers/{consumer_id}"
    await operator.open(path)
    await operator.press("block", do="block", kind="identity", reason="odd")
    await complete(merchant.service, merchant.merchant_id, blocked, phone=phone)
    while await send_messages(merchant.service.context):
        pass
    page = await operator.open(f"{path}/messages")
    assert "We could not confirm who you are" in page.text
    assert "Dear J•• R••" in page.text
    for private in (PROFILE.surname, PROFILE.email, phone):
        assert private not in page.text
    assert (await operator.press("messages", reason="")).status == 400
    page = await operator.press("messages", reason="the consumer asks what we wrote")
    assert f"Dear {PROFILE.name}" in page.text
    assert PROFILE.email in page.text
    assert (await logged(operator, consumer_id))[0] == "consumer.messages"


async def test_many_messages_have_pages_and_no_message_is_on_two_of_them(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    phone = phone_number()
    for _ in range(23):
        order = await merchant.create("10.00")
        await complete(merchant.service, merchant.merchant_id, order, phone=phone)
    await operator.enter(OperatorRole.READ_ONLY)
    path = f"/operator/consumers/{merchant.service.context.vault.consumer_id(phone)}/messages"
    page = await operator.open(path)
    seen = [link for link in page.seen.links if link.startswith("/operator/orders/")]
    assert len(seen) == 20
    following = next(link for link in page.seen.links if "after=" in link)
    page = await operator.open(following)
    seen += [link for link in page.seen.links if link.startswith("/operator/orders/")]
    assert (len(seen), len(set(seen))) == (23, 23)
