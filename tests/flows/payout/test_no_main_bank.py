"""CUOTA_BANK_RAIL=none with CUOTA_BANK_RAILS_KEPT: the kept rails are asked about their payouts, and nothing is sent."""

from __future__ import annotations

from datetime import timedelta

from cuota.flows.payout.send_payouts import NO_BANK_RAIL, send_payouts
from cuota.rails.bank.protocol import BankState
from flows.payout.test_bank_files import FileBank, in_a_file, on_monday
from flows.payout.test_change_of_bank import OtherBank
from support.own_service import Own
from support.payouts import make_payout, payout_row
from support.rails.bank import FlakyBank, SayingBank, with_bank


async def test_a_payout_in_a_file_is_paid_by_the_rules_of_the_kept_rail(own: Own) -> None:
    bank, payout_id = await in_a_file(own, "nacha")
    await send_payouts(bank.context)
    kept = with_bank(bank.context, None, bank.rail)
    while (at := (await payout_row(own.context, payout_id))["try_at"]) is not None:
        bank.at = max(bank.at, at)
        assert await send_payouts(kept) == 1
    assert (await payout_row(own.context, payout_id))["status"] == "paid"


async def test_a_payout_whose_answer_was_lost_is_looked_up_at_the_kept_rail(own: Own) -> None:
    await on_monday(own)
    bank, old = FileBank(own.context, "nacha"), SayingBank(BankState.PAID)
    payout_id = await make_payout(bank.context, own.merchant.merchant_id)
    await send_payouts(with_bank(bank.context, FlakyBank(old, lost=1)))
    bank.at += timedelta(hours=2)
    assert await send_payouts(with_bank(bank.context, None, old)) == 1
    assert (await payout_row(own.context, payout_id))["status"] == "paid"


async def test_a_payout_that_never_reached_the_kept_rail_is_not_sent(own: Own) -> None:
    await on_monday(own)
    bank, old = FileBank(own.context, "nacha"), SayingBank()
    payout_id = await make_payout(bank.context, own.merchant.merchant_id)
    await send_payouts(with_bank(bank.context, FlakyBank(old, lost=1, arrives=False)))
    bank.at += timedelta(hours=2)
    await send_payouts(with_bank(bank.context, None, old))
    row = await payout_row(own.context, payout_id)
    assert (old.amounts, row["status"], row["problem"]) == ({}, "created", NO_BANK_RAIL)
    bank.at += timedelta(hours=2)
    new = OtherBank()
    await send_payouts(with_bank(bank.context, new, old))
    assert list(new.amounts) == [payout_id]


async def test_a_payout_that_no_rail_was_asked_about_is_not_claimed(own: Own) -> None:
    await on_monday(own)
    bank = FileBank(own.context, "nacha")
    payout_id = await make_payout(bank.context, own.merchant.merchant_id)
    before = await payout_row(own.context, payout_id)
    assert await send_payouts(with_bank(bank.context, None, SayingBank())) == 0
    assert await payout_row(own.context, payout_id) == before


async def test_without_any_rail_no_payout_is_claimed(own: Own) -> None:
    bank, _ = await in_a_file(own, "nacha")
    bank.at += timedelta(days=20)
    assert await send_payouts(with_bank(bank.context, None)) == 0
