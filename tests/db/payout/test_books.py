"""The trial balance closes, at every time, and agrees with what merchants are owed."""

from __future__ import annotations

from datetime import timedelta

from cuota.core.ledger import Account
from cuota.db.payout.books import balances
from support.db.busy_merchant import a_busy_merchant
from support.db.settled import PAYOUTS, rows
from support.own_service import Own


async def test_the_trial_balance_closes_at_any_time_and_holds_what_the_rows_say(own: Own) -> None:
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
    # Captured 137.00 less refunds of 70.00, less what was paid, reserved and adjusted.
    assert held[Account.MERCHANT_PAYABLE] == -(6700 - paid - 300 - 150)


async def test_a_day_has_only_the_rows_that_were_written_before_its_end(own: Own) -> None:
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
