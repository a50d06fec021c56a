"""The client reads events about payouts and the bank account."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from cuota.client import Event
from cuota.core.payout.bank_account import CHANGE_DELAY, BankDetails
from cuota.db.payout import sending
from cuota.flows.payout.change_bank_account import change_bank_account
from cuota.flows.payout.settle_payouts import settle_payout
from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota.rails.bank.protocol import BankAnswer, BankState
from support.client_tools import Both
from support.makers import Merchant
from support.payouts import make_payout


async def test_a_payout_s_events_have_the_payout_and_no_order(shop: Both, merchant: Merchant) -> None:
    context = merchant.service.context
    payout_id = await make_payout(context, merchant.merchant_id, 120_437)
    later = context.now() + timedelta(seconds=1)
    (due,) = [
        each
        for each in await sending.claim(context.pool, later, 999, "sandbox")
        if each.payout_id == payout_id
    ]
    await settle_payout(context, due, BankAnswer(BankState.REJECTED, due.amount, "R13 Invalid"))
    await publish_events(context)
    created, returned = [event async for event in shop.events()]
    assert isinstance(created, Event)
    assert (created.type, created.order_id, created.order) == ("payout.created", "", None)
    assert (created.amount, created.currency, created.success) == (Decimal("1204.37"), "USD", True)
    assert created.payout is not None
    assert (created.payout.payout_id, created.payout.status) == (str(payout_id), "created")
    assert isinstance(created.payout.arrival_date, date)
    assert (created.payout.line_count, created.payout.account_last4) == (1, "6789")
    assert (returned.success, returned.message) == (False, "R13 Invalid")


async def test_an_event_about_the_bank_account_has_the_account_and_when_it_takes_effect(
    shop: Both, merchant: Merchant
) -> None:
    context = merchant.service.context
    before = context.now()
    await change_bank_account(context, merchant.merchant_id, BankDetails("021000021", "998877664433"))
    await publish_events(context)
    (changed,) = [event async for event in shop.events()]
    assert changed.bank_account is not None
    assert (changed.bank_account.last4, changed.bank_account.canceled) == ("4433", False)
    assert changed.bank_account.effective_at is not None
    assert changed.bank_account.effective_at >= before + CHANGE_DELAY - timedelta(seconds=1)
    assert (changed.payout, changed.order, changed.amount) == (None, None, None)
