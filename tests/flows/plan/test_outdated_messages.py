"""A message that waits for the morning names the card of its charge, and is not sent if it is no longer true."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from cuota.core.checkout.card import read_card
from cuota.core.plan.hardship import PausePlan
from cuota.flows.plan.limit_asks import Asker
from cuota.flows.plan.manage_plan import change_card, find_plan, overdue
from cuota.flows.plan.send_messages import send_messages
from cuota.rails.inbox import look
from cuota.work.due_orders import settle_due_orders
from support.card import token_of
from support.flows.changing import PHONE, change
from support.flows.collecting import agreed, set_clock
from support.makers import complete
from support.own_service import Own

PAYS, FAILS_LATER, LOST_LATER, NEW = (
    "4242424242424242",
    "4000000000000341",
    "4000000000009987",
    "5555555555554444",
)
HARD, SOFT = 1, 2


async def bought(own: Own, card: str) -> UUID:
    created = await own.auto_merchant.create("100.00")
    await complete(own.service, own.auto_merchant.merchant_id, created, card, phone=PHONE)
    await texts(own)
    return UUID(created["orderId"])


async def texts(own: Own) -> list[str]:
    """Send what is due. Return all text messages, oldest first."""
    while await send_messages(own.context):
        pass
    return [each.text for each in await look(own.context.pool, limit=200) if each.channel == "text"][::-1]


async def until(own: Own, order_id: UUID, *, failures: int = 0, paid: bool = False) -> None:
    """Do the work of the following days until the second payment was declined this often, or is paid."""
    while True:
        at = (await agreed(own, order_id)).order.collect_at
        assert at is not None
        set_clock(own, at)
        while await settle_due_orders(own.context):
            pass
        second = (await agreed(own, order_id)).plan[1]
        if (paid and second.paid) or (failures and second.failures == failures):
            return
        await texts(own)


async def give(own: Own, order_id: UUID, number: str) -> None:
    """Change the card of the plan."""
    context, ids = own.context, (own.auto_merchant.merchant_id, order_id)
    detail = await find_plan(context, context.vault.consumer_id(PHONE), *ids)
    assert detail is not None
    late = sum(item.total for item in overdue(own.context, detail))
    token = await token_of(context, read_card(number, "12/39", "123", context.now().date()))
    await change_card(context, detail, token, late, Asker(PHONE))


async def in_the_morning(own: Own, known: int) -> list[str]:
    """Return the messages of the next ten hours."""
    own.service.clock.ahead += timedelta(hours=10)
    return (await texts(own))[known:]


async def test_a_receipt_names_the_card_that_was_charged_even_if_the_plan_has_another_one_since(
    own: Own,
) -> None:
    order_id = await bought(own, PAYS)
    await until(own, order_id, paid=True)
    known = len(await texts(own))
    await give(own, order_id, NEW)
    receipt = next(text for text in await in_the_morning(own, known) if "We charged $25.00" in text)
    assert "$25.00 to Visa ending 4242" in receipt
    assert "Still to pay, by Mastercard ending 4444" in receipt


async def test_a_consumer_who_gave_another_card_at_night_is_not_asked_for_one_in_the_morning(
    own: Own,
) -> None:
    order_id = await bought(own, LOST_LATER)
    await until(own, order_id, failures=HARD)
    known = len(await texts(own))
    await give(own, order_id, NEW)
    told = await in_the_morning(own, known)
    assert not [text for text in told if "cannot pay" in text]
    assert [text for text in told if "$25.00 to Mastercard ending 4444" in text]


async def test_a_declined_payment_that_was_canceled_at_night_is_not_announced_in_the_morning(
    own: Own,
) -> None:
    order_id = await bought(own, LOST_LATER)
    await until(own, order_id, failures=HARD)
    known = len(await texts(own))
    order = {"orderId": str(order_id)}
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    told = await in_the_morning(own, known)
    assert not [text for text in told if "cannot pay" in text]
    assert [text for text in told if "refunded $100.00" in text]


async def test_the_day_of_a_retry_that_was_moved_meanwhile_is_not_announced(own: Own) -> None:
    order_id = await bought(own, FAILS_LATER)
    await until(own, order_id, failures=SOFT)
    known = len(await texts(own))
    await change(own, order_id, PausePlan(30))
    assert not [text for text in await in_the_morning(own, known) if "We try again on" in text]
