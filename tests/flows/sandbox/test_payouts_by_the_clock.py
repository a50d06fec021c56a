"""Moving the clock pays payouts at their own times, and a rewind also restores the bank's records."""

from __future__ import annotations

from cuota.core.payout.arrival import at_opening, business_days_after, day_at_bank
from cuota.core.payout.bank_account import BankDetails
from cuota.db.payout import bank_accounts
from cuota.flows.payout.change_bank_account import change_bank_account
from cuota.flows.sandbox.fork_sandbox import fork, rewind
from support.payouts import bank_paid, event_types, make_payout, payout_row, returned_lines
from support.time.sandbox import Sandbox


async def test_a_payout_is_paid_at_nine_on_the_next_business_day_of_the_moved_clock(sandbox: Sandbox) -> None:
    payout_id = await make_payout(sandbox.context, sandbox.merchant.merchant_id)
    await sandbox.advance("14d")
    row = await payout_row(sandbox.context, payout_id)
    assert row["status"] == "paid"
    assert row["paid_at"] == at_opening(business_days_after(day_at_bank(row["sent_at"]), 1))
    assert row["try_at"] is None
    assert await event_types(sandbox.context, payout_id) == ["payout.created", "payout.sent", "payout.paid"]


async def test_a_returned_payout_pauses_payouts_until_the_changed_account_takes_effect(
    sandbox: Sandbox,
) -> None:
    merchant_id, context = sandbox.merchant.merchant_id, sandbox.context
    payout_id = await make_payout(context, merchant_id, behaviour="rejected")
    await sandbox.advance("1h")
    assert await returned_lines(context, payout_id) == [12_345]
    assert await bank_accounts.paused_since(context.pool, merchant_id) is not None
    await change_bank_account(context, merchant_id, BankDetails("021000021", "998877664433"))
    await sandbox.advance("2d")
    assert await bank_accounts.paused_since(context.pool, merchant_id) is not None
    await sandbox.advance("2d")
    assert await bank_accounts.paused_since(context.pool, merchant_id) is None


async def test_a_rewind_also_removes_the_bank_s_payments(sandbox: Sandbox) -> None:
    payout_id = await make_payout(sandbox.context, sandbox.merchant.merchant_id)
    await sandbox.advance("1h")
    await fork(sandbox.where, "sent")
    later_id = await make_payout(sandbox.context, sandbox.merchant.merchant_id)
    await sandbox.advance("14d")
    assert await bank_paid(sandbox.context, later_id) == [12_345]
    await rewind(sandbox.where, "sent")
    assert await bank_paid(sandbox.context, payout_id) == [12_345]
    assert await bank_paid(sandbox.context, later_id) == []
