"""`cuota verify` reports nothing while orders are made, paid, captured, refunded, disputed, published, settled and paid out."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from cuota.core.checkout.ending import Lapsed
from cuota.db.verify.recalculate import VerifyReport, verify
from cuota.flows.payout.send_payouts import send_payouts
from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota.work.card_refunds import return_due_money
from support.db.settled import closed, cutoff_of, give_account, give_terms, settled
from support.disputes import captured, charged_back, decided, disputed, network_decides
from support.flows.due import settle_all_due
from support.own_service import Own

ROUNDS = 3


async def sells(own: Own, shop: int) -> None:
    """Make orders of each kind, one after the other."""
    merchant = (own.merchant, own.auto_merchant)[shop % 2]
    for number in range(ROUNDS):
        try:
            order = await merchant.approved("100.00")
            taken = await captured(own.merchant)
        except Lapsed:
            continue  # the clock has passed the end of the checkout
        if merchant is own.merchant:
            await merchant.move(order, "capture", "100.00")
        await merchant.move(order, "refund", "30.00")
        dispute = await disputed(merchant, order, 2000)
        await decided(merchant, dispute, for_consumer=bool(number % 2))
        back = await charged_back(own.merchant, taken, 2500)
        await network_decides(own.merchant, taken, back, for_consumer=bool(number % 2))


async def works(own: Own, stop: asyncio.Event, paid_out: asyncio.Event) -> None:
    """Run the background jobs, and let the clock pass cutoffs and installments. Set `paid_out` when there is a payout."""
    merchant_id = own.merchant.merchant_id
    while not stop.is_set():
        await publish_events(own.context)
        await settled(own.context, merchant_id)
        await return_due_money(own.context)
        await settle_all_due(own.context)
        await send_payouts(own.context)
        if await cutoff_of(own, merchant_id) is not None:
            own.service.clock.ahead += timedelta(hours=2)
            await closed(own.context, merchant_id)
        if await own.context.pool.fetch("SELECT FROM payouts"):
            paid_out.set()


async def checks(own: Own, stop: asyncio.Event) -> list[VerifyReport]:
    reports = []
    while not stop.is_set():
        reports.append(await verify(own.context.pool))
    return reports


async def test_nothing_is_reported_while_everything_changes(own: Own) -> None:
    await give_account(own, own.merchant.merchant_id)
    await give_terms(
        own,
        own.merchant.merchant_id,
        percent=290,
        fixed=30,
        refund_fee="returned",
        reserve=1000,
        reserve_days=1,
    )
    stop, paid_out = asyncio.Event(), asyncio.Event()
    background = [
        asyncio.create_task(works(own, stop, paid_out)),
        asyncio.create_task(checks(own, stop)),
        asyncio.create_task(checks(own, stop)),
    ]
    try:
        await asyncio.gather(*(sells(own, shop) for shop in range(4)))
        # On a Sunday, the next cutoff is many steps of the clock away.
        await asyncio.wait_for(paid_out.wait(), 120)
    finally:
        stop.set()
        done = await asyncio.gather(*background)
    reports = [each for found in done[1:] for each in found]
    assert len(reports) > 4
    paid, reserved = [
        await own.context.pool.fetch(f"SELECT FROM {table}") for table in ("payouts", "reserves")
    ]
    assert paid
    assert reserved
    assert [each for report in reports for each in report.disagreements] == []
    assert (await verify(own.context.pool)).disagreements == []
