"""Two people open the same checkout, and each confirms an own phone number. Only the one who pays sees the payment and is remembered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.db.checkout.remembered import Remembered, remember
from cuota.flows.context import utc_now
from support.makers import Merchant, Running
from support.pages.visitor import CARD_DECLINED, Visitor, address_of, charges
from support.phones import phone_number

CONFIRMED_ONCE, CONFIRMED_ALWAYS = "4000 0025 0000 3155", "4000 0027 6000 3184"


@dataclass
class Two:
    """Two browsers that have both reached the payment page of one order."""

    order: dict[str, Any]
    payer: Visitor
    other: Visitor

    async def result(self, visitor: Visitor) -> str:
        """Open the checkout again in this browser, and return its text."""
        return (await visitor.open(address_of(self.order))).text


@pytest.fixture
async def two(merchant: Merchant, visit: Callable[..., Visitor]) -> Two:
    both = Two(await merchant.create(), visit(), visit())
    await both.payer.until("pay", both.order, phone=phone_number())
    await both.other.until("pay", both.order, phone=phone_number(), surname="Okoro")
    return both


def remembered(visitor: Visitor) -> bool:
    return "remembered" in visitor.http.cookies


async def confirmed(visitor: Visitor, bank: str) -> None:
    assert (await visitor.http.post(bank, data={"answer": "confirm"})).status_code == 303


@pytest.mark.parametrize("how", ["presses Pay during the payment", "sets the cookie by hand"])
async def test_a_browser_that_did_not_pay_is_not_remembered_with_the_payer_s_card(
    two: Two, auto_merchant: Merchant, how: str
) -> None:
    page = await two.payer.send("pay", card_number=CONFIRMED_ONCE)
    if how == "presses Pay during the payment":
        await two.other.send("pay")
    two.other.http.cookies.set("waits", two.order["orderId"])
    await confirmed(two.payer, page.link("Go to your bank"))
    await two.result(two.payer)
    await two.result(two.other)
    assert (remembered(two.payer), remembered(two.other)) == (True, False)
    page = await two.other.open((await auto_merchant.create())["redirectUrl"])
    assert page.form("phone")


async def test_a_card_is_offered_only_to_the_consumer_whose_plan_it_pays(
    service: Running, two: Two, merchant: Merchant
) -> None:
    await two.payer.send("pay")
    context, token, now = service.context, "o" * 43, utc_now()
    ids = merchant.merchant_id, UUID(two.order["orderId"])
    sql = "SELECT consumer_id FROM checkout_sessions WHERE merchant_id = $1 AND order_id = $2 AND profile ->> 'surname' = 'Okoro'"
    row = await context.pool.fetchrow(sql, *ids)
    assert row is not None
    # An earlier release could store this row.
    wrong = Remembered(row["consumer_id"], *ids)
    token_hash = context.vault.hash("remembered-browser", token)
    await remember(context.pool, token_hash, wrong, now, now + timedelta(days=90))
    two.other.http.cookies.set("remembered", token)
    page = await two.other.open((await merchant.create())["redirectUrl"])
    assert page.form("phone")
    assert "Visa" not in page.text


async def test_a_browser_that_did_not_pay_sees_nothing_of_the_charge_and_cannot_cancel_it(
    service: Running, two: Two
) -> None:
    page = await two.payer.send("pay", card_number=CONFIRMED_ALWAYS)
    bank = page.link("Go to your bank")
    _, form = two.other.page.form("pay")
    shown = await two.result(two.other)
    assert "Your payment is on its way" in shown
    assert "Visa" not in shown
    refused = await two.other.http.post(f"{address_of(two.order)}/another-card", data={"csrf": form["csrf"]})
    assert refused.status_code == 303
    assert await charges(service, two.order) == [(2500, False, None)]
    await confirmed(two.payer, bank)
    assert "You paid $25.00 today." in await two.result(two.payer)
    assert await charges(service, two.order) == [(2500, True, None)]


async def test_a_browser_that_did_not_pay_sees_only_that_the_order_is_confirmed(two: Two) -> None:
    await two.payer.send("pay")
    shown = await two.result(two.other)
    assert "Your order is confirmed" in shown
    assert "$25.00" not in shown
    assert "$25.00" in await two.result(two.payer)


async def test_a_browser_that_did_not_pay_is_not_told_that_a_card_was_declined(two: Two) -> None:
    page = await two.payer.send("pay", card_number=CARD_DECLINED)
    assert "was declined" in page.text
    assert "was declined" not in await two.result(two.other)
