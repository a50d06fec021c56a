"""The trial balance closes at every time, and agrees with the amounts owed to merchants."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from cuota.core.ledger import Account
from cuota.db.payout.books import balances
from cuota.db.payout.losses import losses
from support.db.busy_merchant import a_busy_merchant
from support.db.settled import PAYOUTS, rows
from support.own_service import Own


async def test_the_trial_balance_closes_at_any_time_and_equals_the_sum_of_the_rows(own: Own) -> None:
    merchant = await a_busy_merchant(own)
    now = own.service.clock.now()
    for before in (now, now - timedelta(days=1), now - timedelta(days=2), now - timedelta(days=9)):
        found = await balances(own.context.pool, before)
        assert sum(each.debits for each in found) == sum(each.credits for each in found)
    assert await balances(own.context.pool, now - timedelta(days=9)) == []
    held = {each.account: each.balance for each in await balances(own.context.pool, now)}
    assert set(held) == set(Account)
    paid = sum(row["amount"] for row in await rows(own, PAYOUTS, merchant))
    assert held[Account.PAYOUTS_IN_TRANSIT] == -paid == -(7200 + 3500)
    assert held[Account.MERCHANT_RESERVE] == -300
    assert held[Account.LOSSES] == -150
    # 137.00 captured, minus refunds of 70.00, minus the paid, reserved and adjusted amounts.
    assert held[Account.MERCHANT_PAYABLE] == -(6700 - paid - 300 - 150)


async def test_the_trial_balance_of_a_day_has_only_the_rows_written_before_the_day_s_end(own: Own) -> None:
    await a_busy_merchant(own)
    (first,) = await rows(own, "SELECT min(created_at) AS at FROM merchant_transfers")
    at = first["at"]
    before = {each.account: each.balance for each in await balances(own.context.pool, at)}
    after = {
        each.account: each.balance
        for each in await balances(own.context.pool, at + timedelta(microseconds=1))
    }
    assert before[Account.MERCHANT_PAYABLE] == -8000
    assert (after[Account.MERCHANT_PAYABLE], after[Account.MERCHANT_RESERVE]) == (0, -800)


async def test_the_losses_of_all_months_are_the_balance_of_the_account(own: Own) -> None:
    await a_busy_merchant(own)
    later = own.service.clock.now() + timedelta(days=1)
    held = {each.account: each.balance for each in await balances(own.context.pool, later)}
    found = await losses(own.context.pool, later)
    assert sum(each.lost for each in found) == held[Account.LOSSES] == -150
    assert {each.posting for each in found} == {"adjustment"}
    assert await losses(own.context.pool, later - timedelta(days=30)) == []


async def test_a_month_of_losses_ends_at_midnight_in_new_york(own: Own) -> None:
    merchant_id = own.merchant.merchant_id
    async with own.owner() as owner:
        # Half past eleven in the evening, and half past midnight.
        for hour, cents in ((4, 700), (5, 900)):
            await owner.execute(
                """SELECT post_merchant_transfer($1, 'adjustment', gen_random_uuid(), 'losses', 'merchant_payable', $2, 'USD', $3,
                    'adjustment', $2)""",
                merchant_id, cents, datetime(2026, 12, 1, hour, 30, tzinfo=UTC),
            )  # fmt: skip
    found = await losses(own.context.pool, datetime(2027, 1, 1, tzinfo=UTC))
    assert [(each.month, each.lost, each.count) for each in found] == [
        (date(2026, 12, 1), 900, 1),
        (date(2026, 11, 1), 700, 1),
    ]
