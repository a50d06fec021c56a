"""A consumer whom risk declined gets the reasons on the page of the verified browser and by mail. Other browsers do not
get them."""

from __future__ import annotations

from collections.abc import Callable

from cuota.core.risk.adverse import sentences
from cuota.flows.plan.send_messages import send_messages
from support.makers import Merchant, Running
from support.pages.visitor import CARD_DECLINED, Visitor
from support.phones import phone_number

[REASON] = sentences(["sandbox_decline_requested"])


async def test_the_browser_that_entered_the_code_gets_the_reasons(
    merchant: Merchant, visitor: Visitor
) -> None:
    page = await visitor.buy(await merchant.create(), surname="Declinetest")
    assert page.outcome == "declined"
    assert REASON in page.text
    assert "You get these reasons in writing too" in page.text


async def test_other_browsers_with_the_same_link_get_no_reasons(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    order, owner, curious, other = await merchant.create(), visit(), visit(), visit()
    await curious.open(order["redirectUrl"])
    await other.until("pay", order, phone=phone_number())
    await owner.buy(order, surname="Declinetest", phone=phone_number())
    for visitor in (curious, other):
        page = await visitor.open(str(visitor.page.answer.url))
        assert page.outcome == "declined"
        assert REASON not in page.text
        assert "in writing" not in page.text


async def test_a_consumer_whom_the_bank_declined_sees_no_decision_of_ours(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.buy(order, card_number=CARD_DECLINED)
    for _ in range(2):
        page = await visitor.send("pay", card_number=CARD_DECLINED)
    assert page.outcome == "declined"
    assert "in writing" not in page.text
    letters = "SELECT 1 FROM messages WHERE order_id = $1 AND kind = 'declined'"
    assert await service.context.pool.fetch(letters, order["orderId"]) == []


async def test_the_letter_is_sent_once_although_two_workers_run(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    mail = f"{phone_number()}@mail.example"
    order = await merchant.create()
    await visitor.until("details", order, phone=phone_number())
    await visitor.send("details", surname="Declinetest", email=mail)
    await visitor.send("pay")
    # Messages of other tests may be queued before this one, so send until none is due, and then once more.
    while await send_messages(service.context):
        pass
    await send_messages(service.context)
    sent = "SELECT text FROM message_simulator.inbox WHERE channel = 'mail' AND recipient = $1"
    [letter] = await service.context.pool.fetch(sent, mail)
    assert letter["text"].startswith("Dear Jordan Declinetest,")
    assert REASON in letter["text"]
