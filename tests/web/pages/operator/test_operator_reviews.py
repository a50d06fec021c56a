"""The review queue lists the waiting orders with the remaining time, and a person with the right role answers once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from cuota.core.operator.role import OperatorRole
from cuota.core.order.id_bounds import BEYOND
from cuota.core.risk.block import BlockKind
from cuota.db.operator import operator_log
from cuota.flows.merchant.suspend_merchant import suspend_merchant
from cuota.flows.privacy.export_consumer import export_consumer
from cuota.flows.risk.block_consumer import block_consumer
from cuota.web.pages.operator import reviews as operator_reviews
from support import reviews
from support.flows.due import settle_all_due
from support.makers import PROFILE, Merchant
from support.pages.operator_staff import OperatorStaff
from support.pages.visitor import Visitor
from support.phones import phone_number

QUEUE = "/operator/risk/reviews"


@pytest.fixture
def refer(merchant: Merchant, visit: Callable[..., Visitor]) -> Callable[..., Any]:
    """Makes orders that wait for a person."""

    async def made(**fields: str) -> dict[str, Any]:
        order = await merchant.create()
        page = await visit().buy(order, **{"surname": "Refertest", "phone": phone_number(), **fields})
        assert page.outcome == "referred"
        return order

    return made


def address(order: dict[str, Any]) -> str:
    return f"{QUEUE}/{order['orderId']}"


async def test_the_queue_lists_waiting_orders_with_the_remaining_time_and_the_first_page_counts_them(
    operator: OperatorStaff, refer: Callable[..., Any], merchant: Merchant
) -> None:
    order = await refer()
    await operator.enter(OperatorRole.RISK)
    assert "Orders to review" in operator.page.text
    await operator.open("/operator/risk")
    await operator.open(operator.page.link("Reviews"))
    page = await operator.open(f"{QUEUE}?merchant={merchant.merchant_id}")
    assert address(order) in page.seen.links
    assert "49 minutes left" in page.text or "50 minutes left" in page.text
    assert "$100.00" in page.text
    async with operator.service.clock.moved(minutes=47):
        page = await operator.open(f"{QUEUE}?merchant={merchant.merchant_id}")
        assert "2 minutes left" in page.text or "3 minutes left" in page.text


async def test_the_page_of_a_review_has_the_facts_in_words_and_the_masked_consumer(
    operator: OperatorStaff, refer: Callable[..., Any]
) -> None:
    order = await refer()
    await operator.enter(OperatorRole.RISK)
    page = await operator.open(address(order))
    assert "REFERRED by policy" in page.text
    assert "Earlier orders with the same phone, card, address or device:" in page.text
    assert "No plan: no order of this consumer was approved." in page.text
    assert "J•• R••" in page.text
    for secret in ("Refertest", PROFILE.email, PROFILE.address.line1):
        assert secret not in page.answer.text


async def test_the_page_warns_before_an_approval_that_a_suspension_or_a_block_makes_useless(
    operator: OperatorStaff, refer: Callable[..., Any], merchant: Merchant
) -> None:
    order = await refer()
    context = merchant.service.context
    await operator.enter(OperatorRole.RISK)
    page = await operator.open(address(order))
    assert "After an approval" not in page.text
    await suspend_merchant(context, str(merchant.merchant_id), hold=False)
    consumer_id = (await reviews.stored(merchant.service, order))["consumer_id"]
    await block_consumer(context, consumer_id, BlockKind.MISUSE, "stolen card", None, by="Ana")
    page = await operator.open(address(order))
    assert f"{merchant.name} is suspended. After an approval, the consumer cannot confirm" in page.text
    assert "The consumer is blocked. After an approval, the order is declined" in page.text


async def test_an_approval_needs_a_reason_is_in_the_log_and_lets_the_consumer_continue(
    operator: OperatorStaff, refer: Callable[..., Any], merchant: Merchant
) -> None:
    order = await refer()
    await operator.enter(OperatorRole.RISK)
    await operator.open(address(order))
    page = await operator.press(order["orderId"], answer="approve", reason=" ")
    assert page.status == 400
    assert "Say why" in page.text
    page = await operator.press(order["orderId"], answer="approve", reason="known customer")
    assert "The order is approved." in page.text
    assert "known customer" in page.text
    assert "the consumer can confirm it until" in page.text
    assert (await merchant.read(order))["orderStatus"] == "Created"
    [entry] = await operator_log.page(operator.service.context.pool, BEYOND, 9, about=UUID(order["orderId"]))
    assert (entry.action, entry.reason) == ("review.approve", "known customer")
    row = await reviews.stored(operator.service, order)
    assert row["person_id"] is not None


async def test_a_decline_declines_the_order_and_moves_it_to_the_list_of_declined_reviews(
    operator: OperatorStaff, refer: Callable[..., Any], merchant: Merchant
) -> None:
    order = await refer()
    await operator.enter()
    await operator.open(address(order))
    page = await operator.press(order["orderId"], answer="decline", reason="not the owner of the number")
    assert "The order is declined." in page.text
    assert (await merchant.read(order))["orderStatus"] == "Declined"
    listed = await operator.open(f"{QUEUE}?state=declined&merchant={merchant.merchant_id}")
    assert address(order) in listed.seen.links
    assert address(order) not in (await operator.open(f"{QUEUE}?merchant={merchant.merchant_id}")).seen.links


async def test_the_second_of_two_reviewers_sees_who_answered_first(
    desk_browser: Callable[..., OperatorStaff], refer: Callable[..., Any], merchant: Merchant
) -> None:
    order = await refer()
    first, second = desk_browser(), desk_browser()
    for each in (first, second):
        await each.enter(OperatorRole.RISK)
        await each.open(address(order))
    await first.press(order["orderId"], answer="approve", reason="known customer")
    page = await second.press(order["orderId"], answer="decline", reason="looks wrong")
    assert page.status == 409
    assert "has approved this order already. Nothing was changed." in page.text
    assert (await merchant.read(order))["orderStatus"] == "Created"
    entries = await operator_log.page(second.service.context.pool, BEYOND, 9, about=UUID(order["orderId"]))
    assert [each.action for each in entries] == ["review.decline.refused", "review.decline", "review.approve"]


async def test_the_link_that_the_consumer_got_is_shown_to_nobody_who_reads_the_messages(
    operator: OperatorStaff, refer: Callable[..., Any], merchant: Merchant
) -> None:
    """With the link, anybody could cancel the order."""
    phone = phone_number()
    order = await refer(phone=phone)
    await reviews.approve(merchant.service, order)
    (text,) = await reviews.texts_to(merchant.service, phone)
    token = order["redirectUrl"].partition("token=")[2]
    assert token in text
    consumer_id = (await reviews.stored(merchant.service, order))["consumer_id"]
    await operator.enter(OperatorRole.SUPPORT)
    for address_of in (f"/operator/consumers/{consumer_id}", f"/operator/consumers/{consumer_id}/messages"):
        page = await operator.open(address_of)
        assert "You can complete your order" in page.text
        assert "confirm it and pay by " in page.text
        assert token not in page.answer.text
    page = await operator.press("messages", reason="the consumer asked")
    assert phone in page.text
    assert token not in page.answer.text
    exported = await export_consumer(merchant.service.context, phone)
    assert "You can complete your order" in json.dumps(exported["orders"])
    assert token not in json.dumps(exported["orders"])


async def test_a_second_click_is_not_an_error(operator: OperatorStaff, refer: Callable[..., Any]) -> None:
    order = await refer()
    await operator.enter(OperatorRole.RISK)
    form = await operator.open(address(order))
    action, held = form.form(order["orderId"])
    fields = {**held, "answer": "approve", "reason": "known customer"}
    for _ in range(2):
        assert (await operator.http.post(action, data=fields)).status_code == 303


@pytest.mark.parametrize("given", ["", "approved", "delete"])
async def test_a_form_without_an_answer_changes_nothing(
    operator: OperatorStaff, refer: Callable[..., Any], given: str
) -> None:
    order = await refer()
    await operator.enter(OperatorRole.RISK)
    await operator.open(address(order))
    page = await operator.press(order["orderId"], answer=given, reason="r")
    assert (page.status, (await reviews.stored(operator.service, order))["state"]) == (400, "waiting")


async def test_a_role_that_may_only_read_sees_no_form_and_cannot_answer(
    operator: OperatorStaff, refer: Callable[..., Any]
) -> None:
    order = await refer()
    await operator.enter(OperatorRole.READ_ONLY)
    page = await operator.open(address(order))
    assert "REFERRED by policy" in page.text
    assert not [action for action, _ in page.seen.forms if action.endswith(order["orderId"])]
    data = {"csrf": page.form("leave")[1]["csrf"], "answer": "approve", "reason": "r"}
    assert (await operator.http.post(address(order), data=data)).status_code == 403


async def test_a_person_with_an_app_enters_a_fresh_code(
    operator: OperatorStaff, refer: Callable[..., Any]
) -> None:
    order = await refer()
    await operator.sign_in(await operator.invited(f"{phone_number()}@mail.example", OperatorRole.RISK))
    async with operator.service.context.pool.session() as connection:
        await connection.execute("UPDATE operator_sessions SET proved_at = proved_at - interval '10 minutes'")
    await operator.open(address(order))
    page = await operator.press(order["orderId"], answer="approve", reason="known customer")
    assert (page.status, (await reviews.stored(operator.service, order))["state"]) == (400, "waiting")
    assert "Enter the code of your authenticator app." in page.text


async def test_after_the_deadline_the_page_says_so(
    operator: OperatorStaff, refer: Callable[..., Any]
) -> None:
    order = await refer()
    await operator.enter(OperatorRole.RISK)
    await operator.open(address(order))
    async with operator.service.clock.moved(minutes=51):
        page = await operator.press(order["orderId"], answer="approve", reason="known customer")
        assert page.status == 409
        assert "The time for an answer is over" in page.text
        await settle_all_due(operator.service.context)
        page = await operator.open(address(order))
        assert "The time for an answer is over, so the order is declined" in page.text


async def test_a_long_queue_has_pages_and_no_order_is_shown_twice(
    operator: OperatorStaff, refer: Callable[..., Any], merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_reviews, "A_PAGE", 2)
    orders = [await refer() for _ in range(5)]
    await operator.enter(OperatorRole.RISK)
    for state in ("waiting", "approved"):
        seen: list[str] = []
        page = await operator.open(f"{QUEUE}?state={state}&merchant={merchant.merchant_id}")
        while True:
            seen += [link for link in page.seen.links if link.startswith(f"{QUEUE}/")]
            following = [link for link, words in page.seen.links.items() if words == "Next page"]
            if not following:
                break
            page = await operator.open(following[0])
        expected = [address(each) for each in orders]
        assert seen == (expected if state == "waiting" else expected[::-1])
        for each in orders if state == "waiting" else ():
            await reviews.approve(operator.service, each)


@pytest.mark.parametrize(
    "query",
    ["state=gone", "merchant=nobody", "merchant=%00", "after=x", "after=2026-01-01T00:00:00%2B00:00_x"],
)
async def test_wrong_parameters_in_an_address_are_ignored(operator: OperatorStaff, query: str) -> None:
    await operator.enter(OperatorRole.RISK)
    assert (await operator.open(f"{QUEUE}?{query}")).status == 200


async def test_a_simulation_with_other_limits_counts_the_orders_for_a_person(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await merchant.approved()
    await operator.enter(OperatorRole.RISK)
    page = await operator.open("/operator/risk")
    assert "Referred to a personnobody" in page.text
    page = await operator.press("risk", threshold="601", refer_from="600", days="1")
    assert "Referred to a person with these limits" in page.text
    assert "Newly referred" in page.text
    for wrong in ("601", "900", "x", "-1"):
        page = await operator.press("risk", threshold="601", refer_from=wrong, days="1")
        assert (page.status, "Enter a whole number below 601, or leave the field empty." in page.text) == (
            400,
            True,
        )
