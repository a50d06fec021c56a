"""The balance of a merchant: the available, pending, reserved and owed amounts, and the expected next payout."""

from __future__ import annotations

from cuota.core.payout.balance import Balance, ExpectedPayout
from cuota.core.payout.calendar import next_business_day
from cuota.core.payout.cutoff import BANK_ZONE
from cuota.db.payout import balance
from cuota.flows.payout.adjust_merchant import adjust_merchant
from support.db.busy_merchant import a_busy_merchant, next_cutoff_closes
from support.db.settled import (
    PAYOUTS,
    cutoff_of,
    give_account,
    give_terms,
    post_fee,
    publish,
    rows,
    settled,
    take_accounts,
)
from support.own_service import Own


async def read(own: Own) -> Balance:
    return await balance.read(own.context.pool, own.merchant.merchant_id, own.service.clock.now())


async def test_the_balance_of_a_merchant_without_movements_is_zero(own: Own) -> None:
    assert await read(own) == Balance(0, 0, 0, 0, None)


async def test_a_capture_is_pending_at_once_and_the_balance_does_not_change_when_its_lines_are_written(
    own: Own,
) -> None:
    merchant = own.merchant.merchant_id
    await give_account(own, merchant)
    order = await own.merchant.approved("100.00")
    await own.merchant.move(order, "capture", "60.00")
    await post_fee(own, order["orderId"], 354)
    await own.merchant.move(order, "refund", "10.00")
    in_the_outbox = await read(own)
    await publish(own.context, merchant)
    in_the_feed = await read(own)
    await settled(own.context, merchant)
    with_lines = await read(own)
    assert (in_the_outbox.available, in_the_outbox.pending, in_the_outbox.debt) == (0, 4646, 0)
    assert in_the_outbox == in_the_feed == with_lines
    cutoff = await cutoff_of(own, merchant)
    assert cutoff is not None
    day = next_business_day(cutoff.astimezone(BANK_ZONE).date())
    assert with_lines.next_payout == ExpectedPayout(cutoff, day, 4646)


async def test_the_expected_payout_equals_the_next_payout(own: Own) -> None:
    merchant = own.merchant.merchant_id
    await give_account(own, merchant)
    await give_terms(own, merchant, reserve=1000, reserve_days=1)
    order = await own.merchant.approved("500.00")
    for amount in ("100.00", "0.05"):
        await own.merchant.move(order, "capture", amount)
        await settled(own.context, merchant)
        expected = (await read(own)).next_payout
        assert expected is not None
        await next_cutoff_closes(own, merchant)
        payout = (await rows(own, PAYOUTS, merchant))[-1]
        assert (payout["amount"], payout["cutoff"], payout["arrival_date"]) == (
            expected.amount, expected.closes_at, expected.arrival_date,
        )  # fmt: skip
    assert (await read(own)).reserved == 1


async def test_a_carried_amount_is_available_and_the_debt_is_the_amount_that_is_missing(own: Own) -> None:
    merchant = await a_busy_merchant(own)
    # A refund of 50.00 was carried. Since then there were a capture of 7.00 and an adjustment of -1.50.
    found = await read(own)
    assert (found.available, found.pending, found.debt, found.next_payout) == (-5000, 550, 4450, None)
    assert found.reserved == 300
    await adjust_merchant(own.context, own.merchant.name, 10000, "Goodwill")
    found = await read(own)
    assert (found.available, found.pending, found.debt) == (-5000, 10550, 0)
    assert found.next_payout is not None
    # The reserve of 3.00 is released. A tenth of captures minus refunds is negative, so no new reserve is held.
    assert found.next_payout.amount == 5550 + 300
    await next_cutoff_closes(own, merchant)
    assert (await rows(own, PAYOUTS, merchant))[-1]["amount"] == 5850


async def test_no_payout_is_expected_below_the_minimum_or_without_a_bank_account_or_while_paused(
    own: Own,
) -> None:
    merchant = own.merchant.merchant_id
    await take_accounts(own, merchant)
    order = await own.merchant.approved("100.00")
    await own.merchant.move(order, "capture", "9.99")
    await settled(own.context, merchant)
    assert (await read(own)).next_payout is None
    await give_account(own, merchant)
    assert (await read(own)).next_payout is not None
    await give_terms(own, merchant, minimum=1000)
    assert (await read(own)).next_payout is None
    await own.merchant.move(order, "capture", "0.01")
    assert (await read(own)).next_payout is not None
    async with own.owner() as connection:
        await connection.execute("UPDATE settlements SET paused_since = now()")
    assert (await read(own)).next_payout is None
