"""Events about payouts and bank accounts have the same bytes in the feed, by themselves, replayed and delivered."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from client.test_events import address
from cuota.commands.listen import listen
from cuota.core.payout.bank_account import CHANGE_DELAY, BankDetails
from cuota.db.payout import sending
from cuota.flows.payout.change_bank_account import cancel_change, change_bank_account
from cuota.flows.payout.settle_payouts import settle_payout
from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota.flows.webhook.show_event import event_id
from cuota.rails.bank.protocol import BankAnswer, BankState
from support.contract import read_json
from support.makers import Merchant, make_merchant
from support.payouts import make_payout, payout_row
from support.sending import deliver
from support.waiting import until
from web.api.test_events import feed

NEW = BankDetails("021000021", "998877664433")


async def walked(merchant: Merchant, *states: BankState) -> UUID:
    """Make a payout, and let the bank report these states of it, one after the other."""
    context = merchant.service.context
    payout_id = await make_payout(context, merchant.merchant_id)
    later = context.now() + timedelta(seconds=1)
    (due,) = [
        each
        for each in await sending.claim(context.pool, later, 999, "sandbox")
        if each.payout_id == payout_id
    ]
    for state in states:
        await settle_payout(context, due, BankAnswer(state, due.amount, "R03 No Account"))
    return payout_id


ALL = (BankState.ACCEPTED, BankState.PAID, BankState.RETURNED)


async def test_each_status_of_a_payout_has_an_event_with_that_status(
    merchant: Merchant,
) -> None:
    payout_id = await walked(merchant, *ALL)
    events = await feed(merchant)
    row = await payout_row(merchant.service.context, payout_id)
    assert [event["type"] for event in events] == [
        "payout.created",
        "payout.sent",
        "payout.paid",
        "payout.returned",
    ]
    assert [event["id"] for event in events] == [event_id(payout_id, number) for number in range(1, 5)]
    assert [event["payout"]["status"] for event in events] == ["created", "sent", "paid", "returned"]
    assert [event.get("reason") for event in events] == [None, None, None, "R03 No Account"]
    for event in events:
        assert (event["merchantId"], event["test"]) == (str(merchant.merchant_id), True)
        assert {**event["payout"], "status": ""} == {
            "payoutId": str(payout_id), "number": 1, "status": "", "amount": read_json("123.45"), "currency": "USD",
            "closedAt": event["payout"]["closedAt"], "arrivalDate": row["arrival_date"].isoformat(), "lineCount": 1,
            "bankAccount": {"last4": "6789"},
        }  # fmt: skip


async def test_an_event_has_the_same_bytes_after_the_payout_s_status_changes(merchant: Merchant) -> None:
    context = merchant.service.context
    payout_id = await walked(merchant, BankState.ACCEPTED)
    await publish_events(context)
    path = f"/events/{event_id(payout_id, 2)}"
    before = (await merchant.http.get(path)).content
    await context.pool.fetch("UPDATE payouts SET try_at = now() WHERE payout_id = $1 RETURNING 1", payout_id)
    later = context.now() + timedelta(minutes=1)
    (due,) = [
        each
        for each in await sending.claim(context.pool, later, 999, "sandbox")
        if each.payout_id == payout_id
    ]
    await settle_payout(context, due, BankAnswer(BankState.RETURNED, due.amount, "R03"))
    assert (await merchant.http.get(path)).content == before


async def test_one_feed_has_events_of_payouts_and_orders_in_the_order_in_which_they_happened(
    merchant: Merchant,
) -> None:
    await merchant.create("100.00")
    await publish_events(merchant.service.context)
    await walked(merchant, BankState.ACCEPTED)
    await publish_events(merchant.service.context)
    await merchant.create("50.00")
    types = [event["type"] for event in await feed(merchant, limit=2)]
    assert types == ["order.created", "payout.created", "payout.sent", "order.created"]


async def test_a_change_of_the_bank_account_is_an_event_and_its_cancellation_is_another(
    merchant: Merchant,
) -> None:
    context = merchant.service.context
    before = context.now()
    await change_bank_account(context, merchant.merchant_id, NEW)
    await cancel_change(context, merchant.merchant_id)
    first, second = await feed(merchant)
    assert (first["type"], second["type"]) == ("bank_account.changed", "bank_account.changed")
    assert (first["sequence"], second["sequence"]) == (1, 2)
    assert (first["bankAccount"]["last4"], first["bankAccount"]["canceled"]) == ("4433", False)
    assert second["bankAccount"] == {**first["bankAccount"], "canceled": True}
    assert first["bankAccount"]["effectiveAt"] >= (before + CHANGE_DELAY).isoformat()[:19]
    assert NEW.account not in str([first, second])


async def test_an_event_of_another_merchant_s_payout_is_not_found(merchant: Merchant) -> None:
    payout_id = await walked(merchant)
    await publish_events(merchant.service.context)
    async with make_merchant(merchant.service) as other:
        for path in ("", "/deliveries"):
            answer = await other.http.get(f"/events/{event_id(payout_id, 1)}{path}")
            assert answer.status_code == 404


async def test_an_endpoint_gets_a_payout_s_events_in_order_and_again_when_they_are_replayed(
    merchant: Merchant,
) -> None:
    async with address() as hooks:
        await merchant.http.post("/webhook-endpoints", json={"url": hooks.url})
        payout_id = await walked(merchant, *ALL)
        await change_bank_account(merchant.service.context, merchant.merchant_id, NEW)
        await deliver(merchant)
        bodies: list[bytes] = [body for _, body in hooks.got]
        of_payout = [body for body in bodies if b'"payout.' in body]
        assert [read_json(body)["sequence"] for body in of_payout] == [1, 2, 3, 4]
        assert len(bodies) == 5
        for body in bodies:
            event: dict[str, Any] = merchant.service.contract.check_event(body)
            assert (await merchant.http.get(f"/events/{event['id']}")).content == body
        answer = await merchant.http.post(f"/events/{event_id(payout_id, 4)}/replay")
        assert answer.json() == {"replayed": 1}
        await deliver(merchant)
        assert hooks.got[-1][1] == of_payout[-1]
        shown = (await merchant.http.get(f"/events/{event_id(payout_id, 4)}/deliveries")).json()
        assert [each["state"] for each in shown["deliveries"]] == ["delivered"]


async def test_listen_prints_payouts_and_bank_accounts(
    merchant: Merchant, capsys: pytest.CaptureFixture[str]
) -> None:
    context = merchant.service.context
    payout_id = await walked(merchant, BankState.ACCEPTED)
    await change_bank_account(context, merchant.merchant_id, NEW)
    await publish_events(context)
    printed = [""]

    def three_lines() -> bool:
        printed[0] += capsys.readouterr().out
        return printed[0].count("\n") >= 3

    listening = asyncio.create_task(listen(context, merchant.name, None, as_json=False, from_start=True))
    await until(three_lines)
    listening.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await listening
    lines = (printed[0] + capsys.readouterr().out).splitlines()
    assert len(lines) == 3
    assert f"payout.sent                123.45  {payout_id}" in lines[1]
    assert "bank_account.changed     ****4433" in lines[2]
