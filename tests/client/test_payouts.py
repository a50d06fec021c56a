"""Both clients read payouts, and prove a payout from the service's real webhooks."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from cuota.client import NotFound, Payout, PayoutLine, verify_payout
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.client_tools import Both
from support.makers import Merchant
from support.settlement_rows import (
    Row,
    close,
    lines_of_the_feed,
    paid,
    write_account,
    write_lines,
    write_terms,
)


async def walk(shop: Both, name: str, *arguments: Any, **more: Any) -> list[Any]:
    return [each async for each in shop._walk(name, *arguments, **more)]


async def test_payouts_and_lines_are_iterated_page_by_page(shop: Both, merchant: Merchant) -> None:
    ids = [await paid(merchant, *[Row("capture", 100)] * 3) for _ in range(3)]
    payouts: list[Payout] = await walk(shop, "payouts", page_size=2)
    assert [payout.payout_id for payout in payouts] == ids[::-1]
    assert await walk(shop, "payouts", status="created") == []
    assert (payouts[0].amount, payouts[0].last4, payouts[0].line_count) == (Decimal("3.00"), "6789", 3)
    lines: list[PayoutLine] = await walk(shop, "payout_lines", ids[1], page_size=2)
    assert [line.line_id for line in lines] == ["4", "5", "6"]
    one = await shop("payout", ids[1])
    assert (one.first_line_id, one.totals["capture"].count, one.totals["overall"].net) == ("4", 3, 3)


async def test_the_balance_and_the_terms_are_read(shop: Both, merchant: Merchant) -> None:
    await write_terms(merchant, refund_fee="pro_rata")
    await write_account(merchant)
    await write_lines(merchant, [Row("capture", 1000)])
    balance = await shop("balance")
    assert (balance.available + balance.pending, balance.debt) == (10, 0)
    assert balance.next_payout.amount == 10
    (terms,) = await shop("terms")
    assert (terms.percent, terms.fixed, terms.refund_fee) == (Decimal("5.90"), Decimal("0.30"), "pro_rata")


async def test_an_unknown_payout_is_not_found(shop: Both) -> None:
    with pytest.raises(NotFound):
        await shop("payout", "019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c11")


@pytest.mark.parametrize("refund_fee", ["kept", "pro_rata", "returned"])
async def test_a_correct_payout_is_proved_by_the_events_of_the_service(
    shop: Both, merchant: Merchant, refund_fee: str
) -> None:
    await write_terms(merchant, refund_fee=refund_fee)
    for _ in range(2):
        order = await merchant.approved("119.96")
        moves = [
            ("capture", "33.33"),
            ("capture", "50.01"),
            ("refund", "10.01"),
            ("refund", "20.02"),
            ("void", "5"),
        ]
        for kind, amount in moves:
            assert (await merchant.move(order, kind, amount)).status_code == 200
    await publish_events(merchant.service.context)
    await lines_of_the_feed(merchant)
    payout = await shop("payout", await close(merchant))
    lines = await walk(shop, "payout_lines", payout.payout_id)
    events = [event async for event in shop.events()]
    terms = await shop("terms")
    verdict = verify_payout(payout, lines, events, terms, settled=())
    assert verdict.problems == ()
    assert (verdict.net, verdict.waiting, len(verdict.settled)) == (payout.amount, (), 8)
    without = [event for event in events if event.type != "refund.completed"]
    assert {problem.kind for problem in verify_payout(payout, lines, without, terms).problems} == {
        "unreported"
    }
