"""The operator changes the bank rail or the format of its files: each payout follows the rules of the rail that sent it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import asyncpg
import pytest

from cuota.core.payout.camt053 import read_camt053
from cuota.db.payout import operator_list
from cuota.flows.context import Context
from cuota.flows.payout.bank_files import record_report
from cuota.flows.payout.days import days_now
from cuota.flows.payout.send_payouts import send_payouts
from cuota.rails.bank.protocol import BankState
from flows.payout.test_bank_files import FileBank, in_a_file, on_monday
from support.bank.statements import booked, statement
from support.own_service import Own
from support.payouts import make_payout, payout_row
from support.rails.bank import SayingBank, with_bank


class OtherBank(SayingBank):
    """A bank of another company."""

    name = "other"


async def sent_with(own: Own, kind: str) -> FileBank:
    """Return the bank that has sent a payout in a file."""
    bank, _ = await in_a_file(own, kind)
    await _look(bank.context, bank)
    return bank


async def _look(context: Context, bank: FileBank, *, days: int = 0) -> None:
    """Let days pass and the bank be asked about every payout."""
    bank.at += timedelta(days=days)
    async with context.pool.session() as session:
        await session.execute("UPDATE payouts SET try_at = $1 WHERE try_at IS NOT NULL", bank.at)
    await send_payouts(replace(context, now=lambda: bank.at))


async def _only(own: Own) -> dict[str, object]:
    [row] = await own.context.pool.fetch("SELECT payout_id FROM payouts")
    return await payout_row(own.context, row["payout_id"])


async def test_an_iso_payment_without_a_report_is_not_paid_after_a_change_to_nacha(own: Own) -> None:
    bank = await sent_with(own, "pain001")
    later = FileBank(own.context, "nacha", bank.at + timedelta(days=20))
    await _look(later.context, later)
    assert (await _only(own))["status"] == "sent"


async def test_a_nacha_payment_counts_as_paid_after_a_change_to_iso_20022(own: Own) -> None:
    bank = await sent_with(own, "nacha")
    later = FileBank(own.context, "pain001", bank.at + timedelta(days=20))
    await _look(later.context, later)
    assert (await _only(own))["status"] == "paid"


async def test_a_nacha_payment_is_late_by_the_rules_of_nacha_after_a_change_to_iso_20022(own: Own) -> None:
    await sent_with(own, "nacha")
    for day, late in ((date(2026, 11, 27), 0), (date(2026, 12, 1), 1)):
        days = replace(days_now(own.context), today=day, confirmed=day)
        assert await operator_list.count_troubled(own.context.pool, days) == late


async def test_a_sent_payout_is_looked_up_at_the_bank_that_sent_it(own: Own) -> None:
    await on_monday(own)
    old, new = SayingBank(), OtherBank(BankState.RETURNED, "R03")
    bank = FileBank(own.context, "nacha")
    payout_id = await make_payout(bank.context, own.merchant.merchant_id)
    await send_payouts(with_bank(bank.context, old))
    new.amounts[payout_id] = old.amounts[payout_id]
    old.says = BankState.PAID
    await _look(with_bank(bank.context, new, old), bank, days=1)
    row = await payout_row(own.context, payout_id)
    assert (row["status"], row["bank_rail"]) == ("paid", "saying")


@pytest.mark.parametrize("says", [None, BankState.ACCEPTED])
async def test_a_payout_whose_bank_is_missing_is_not_sent_again_and_the_operator_is_told_what_to_do(
    own: Own, says: BankState | None
) -> None:
    await on_monday(own)
    bank, new = FileBank(own.context, "nacha"), OtherBank()
    payout_id = await make_payout(bank.context, own.merchant.merchant_id)
    # With `files`, the payout waits for its file. The other bank has accepted the payout.
    await send_payouts(bank.context if says is None else with_bank(bank.context, SayingBank(says)))
    await _look(with_bank(bank.context, new), bank, days=1)
    row = await payout_row(own.context, payout_id)
    assert row["status"] == ("created" if says is None else "sent")
    assert row["problem"].endswith("is not loaded; name it in CUOTA_BANK_RAILS_KEPT")
    assert new.amounts == {}


async def test_a_payout_that_never_reached_the_old_bank_is_sent_by_the_new_one(own: Own) -> None:
    await on_monday(own)
    bank, old, new = FileBank(own.context, "nacha"), SayingBank(), OtherBank()
    payout_id = await make_payout(bank.context, own.merchant.merchant_id)
    await send_payouts(with_bank(bank.context, old))
    async with own.owner() as owner:
        await owner.execute("ALTER TABLE payouts DISABLE TRIGGER payouts_move_forward_only")
        await owner.execute("UPDATE payouts SET status = 'created', sent_at = NULL, tries = 1")
        await owner.execute("ALTER TABLE payouts ENABLE TRIGGER payouts_move_forward_only")
    old.amounts.clear()
    await _look(with_bank(bank.context, new, old), bank)
    row = await payout_row(own.context, payout_id)
    assert (row["status"], row["bank_rail"]) == ("sent", "other")


async def test_a_payout_of_an_earlier_release_is_looked_up_at_every_bank(own: Own) -> None:
    await on_monday(own)
    bank, old, new = FileBank(own.context, "nacha"), SayingBank(), OtherBank()
    payout_id = await make_payout(bank.context, own.merchant.merchant_id)
    old.amounts[payout_id] = 12_345
    async with own.owner() as owner:
        await owner.execute("UPDATE payouts SET status = 'sent', sent_at = closed_at, events = 2, tries = 1")
    old.says = BankState.PAID
    await _look(with_bank(bank.context, new, old), bank)
    row = await payout_row(own.context, payout_id)
    assert (row["status"], row["bank_rail"]) == ("paid", "saying")


async def test_a_report_of_the_old_bank_s_files_is_applied_while_another_bank_sends(own: Own) -> None:
    bank, payout_id = await in_a_file(own, "pain001")
    await _look(bank.context, bank)
    context = with_bank(bank.context, OtherBank(), bank.rail)
    debits = read_camt053(statement(booked("DBIT", "123.45", payout_id.hex)))
    assert await record_report(context, bank.rail, debits) == (1, 0, [])
    await send_payouts(context)
    assert (await payout_row(own.context, payout_id))["status"] == "paid"


async def test_a_sent_payout_keeps_its_bank(own: Own) -> None:
    await sent_with(own, "nacha")
    async with own.owner() as owner:
        with pytest.raises(asyncpg.CheckViolationError, match="was sent by the bank rail files"):
            await owner.execute("UPDATE payouts SET bank_rail = 'other'")
