"""A payout above NACHA's limit for one payment: the operator is told what to do, and the merchant's other payouts go on."""

from __future__ import annotations

from datetime import timedelta

from cuota.core.payout.nacha import MOST_CENTS
from cuota.db.payout import operator_list
from cuota.flows.payout.days import days_now
from cuota.flows.payout.send_payouts import send_payouts
from flows.payout.test_bank_files import FileBank, on_monday
from flows.payout.test_change_of_bank import OtherBank
from flows.payout.test_held_again import hold
from support.own_service import Own
from support.payouts import make_payout, payout_row, returned_lines
from support.rails.bank import with_bank


async def test_a_payout_above_the_limit_waits_with_a_problem_and_the_next_payout_is_sent(own: Own) -> None:
    await on_monday(own)
    bank = FileBank(own.context, "nacha")
    large = await make_payout(bank.context, own.merchant.merchant_id, MOST_CENTS + 1)
    small = await make_payout(bank.context, own.merchant.merchant_id)
    await send_payouts(bank.context)
    row = await payout_row(own.context, large)
    assert row["status"] == "created"
    assert "at most 99999999.99" in row["problem"]
    assert "CUOTA_BANK_FORMAT=pain001" in row["problem"]
    assert await returned_lines(own.context, large) == []
    [settled] = await own.context.pool.fetch("SELECT DISTINCT paused_since FROM settlements")
    assert settled["paused_since"] is None
    assert await operator_list.count_troubled(own.context.pool, days_now(bank.context)) == 1
    assert await bank.make() == ([1], 0)
    await send_payouts(bank.context)
    assert (await payout_row(own.context, small))["status"] == "sent"


async def test_a_large_payout_is_sent_with_iso_20022_and_stops_no_nacha_file_before(own: Own) -> None:
    await on_monday(own)
    nacha = FileBank(own.context, "nacha")
    large = await make_payout(nacha.context, own.merchant.merchant_id, MOST_CENTS + 1)
    await send_payouts(nacha.context)
    iso = FileBank(own.context, "pain001")
    async with own.context.pool.session() as session:
        await session.execute("UPDATE payouts SET try_at = $1", nacha.at)
    await send_payouts(iso.context)
    # The operator goes back to NACHA too early: the payment waits, and the others are paid.
    await make_payout(nacha.context, own.merchant.merchant_id)
    await send_payouts(nacha.context)
    assert await nacha.make() == ([1], 0)
    assert await nacha.rail.books.waiting() == (1, MOST_CENTS + 1)
    assert await iso.make() == ([2], 0)
    await send_payouts(nacha.context)
    assert (await payout_row(own.context, large))["status"] == "sent"


async def test_a_hold_stops_a_payout_above_the_limit_also_after_a_change_of_the_bank(own: Own) -> None:
    await on_monday(own)
    bank, new = FileBank(own.context, "nacha"), OtherBank()
    large = await make_payout(bank.context, own.merchant.merchant_id, MOST_CENTS + 1)
    await send_payouts(bank.context)
    bank.at += timedelta(minutes=1)
    await hold(bank.context, own.merchant.merchant_id)
    await send_payouts(with_bank(bank.context, new, bank.rail))
    row = await payout_row(own.context, large)
    assert (new.amounts, row["status"], row["held_at"], row["try_at"]) == ({}, "created", bank.at, None)
