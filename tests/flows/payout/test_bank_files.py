"""Files for a bank: a hold stops a payment until its file is made, and a report of the bank is applied at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from cuota.core.onboarding.checklist import Item
from cuota.core.payout.bank_order import Originator
from cuota.core.payout.bank_report import Reported
from cuota.core.payout.camt053 import read_camt053
from cuota.core.payout.nacha_return import read_nacha_return
from cuota.db.payout import holds, operator_list
from cuota.db.payout.holds import HoldReason
from cuota.flows.context import Context
from cuota.flows.payout.bank_files import make_files, record_report
from cuota.flows.payout.days import days_now
from cuota.flows.payout.send_payouts import send_payouts
from cuota.rails.bank.files import FileBankRail
from cuota.rails.settings import BankFileSettings, RailSettings
from support.bank.statements import booked, nacha_returns, statement
from support.onboarding import approve, decide, new_merchant, requiring_approval
from support.own_service import Own
from support.payouts import make_payout, payout_row, returned_lines
from support.rails.bank import with_bank

US = Originator("Cuota Payments Inc.", "1234567890", "First Bank", "011000015", "000111222333")
MONDAY = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
DAY = date(2026, 11, 24)
CENTS = 12_345  # the amount of support.payouts.make_payout


class FileBank:
    """The rail of bank files, with a clock that the test moves."""

    def __init__(self, context: Context, kind: str, at: datetime = MONDAY) -> None:
        self.at = at
        settings = RailSettings(bank="files", bank_files=BankFileSettings(kind, US))
        self.rail = FileBankRail(settings, context.pool, context.vault, lambda: self.at)
        self.context = with_bank(replace(context, now=lambda: self.at), self.rail)

    async def make(self) -> tuple[list[int], int]:
        made = await make_files(self.context, self.rail, DAY)
        assert made.unreadable == []
        return made.numbers, made.stopped

    async def returned(self, payout_id: UUID, kind: str) -> Reported:
        """Return the bank's report that this payment came back."""
        if kind == "pain001":
            [back] = read_camt053(statement(booked("CRDT", "123.45", payout_id.hex, reason="AC04")))
            return back
        [row] = await self.context.pool.fetch("SELECT order_number FROM bank_files.payments")
        [back], _ = read_nacha_return(nacha_returns(("799R03", f"01100001{row['order_number']:07d}", CENTS)))
        return back


async def on_monday(own: Own) -> None:
    """Let the merchant's account be in force on MONDAY already."""
    async with own.owner() as owner:
        before = MONDAY - timedelta(days=1)
        await owner.execute(
            "UPDATE bank_accounts SET effective_at = $1, announced_at = $1, created_at = $1", before
        )


async def in_a_file(own: Own, kind: str) -> tuple[FileBank, UUID]:
    """Return the bank and a payout whose payment is in its first file."""
    await on_monday(own)
    bank = FileBank(own.context, kind)
    payout_id = await make_payout(bank.context, own.merchant.merchant_id)
    await send_payouts(bank.context)
    assert await bank.make() == ([1], 0)
    return bank, payout_id


@pytest.mark.parametrize("kind", ["nacha", "pain001"])
async def test_a_return_that_is_reported_after_the_last_look_is_credited_once(own: Own, kind: str) -> None:
    bank, payout_id = await in_a_file(own, kind)
    bank.at += timedelta(minutes=5)
    await send_payouts(bank.context)
    if kind == "pain001":
        debits = read_camt053(statement(booked("DBIT", "123.45", payout_id.hex)))
        assert await record_report(bank.context, bank.rail, debits) == (1, 0, [])
    while (at := (await payout_row(bank.context, payout_id))["try_at"]) is not None:
        bank.at = max(bank.at, at)
        await send_payouts(bank.context)
    assert (await payout_row(bank.context, payout_id))["status"] == "paid"
    bank.at += timedelta(days=30)
    back = await bank.returned(payout_id, kind)
    for _ in range(2):
        assert await record_report(bank.context, bank.rail, [back]) == (0, 1, [])
        await send_payouts(bank.context)
    assert (await payout_row(bank.context, payout_id))["status"] == "returned"
    assert await returned_lines(bank.context, payout_id) == [CENTS]


async def test_a_hold_stops_a_payment_that_waits_for_the_next_file_until_its_release(own: Own) -> None:
    await on_monday(own)
    merchant_id = own.merchant.merchant_id
    bank = FileBank(own.context, "nacha")
    payout_id = await make_payout(bank.context, merchant_id)
    await send_payouts(bank.context)
    assert await bank.rail.books.waiting() == (1, CENTS)
    await holds.hold(bank.context.pool, merchant_id, HoldReason.OPERATOR, bank.at, on=True)
    assert await bank.make() == ([], 1)
    row = await payout_row(bank.context, payout_id)
    assert (row["status"], row["held_at"]) == ("created", bank.at)
    bank.at += timedelta(hours=2)
    assert await send_payouts(bank.context) == 0
    await holds.hold(bank.context.pool, merchant_id, HoldReason.OPERATOR, bank.at, on=False)
    await holds.release(bank.context.pool, merchant_id, payout_id, bank.at, DAY)
    await send_payouts(bank.context)
    assert await bank.make() == ([1], 0)


async def test_a_payment_to_an_account_that_was_rejected_meanwhile_goes_into_no_file(own: Own) -> None:
    base = requiring_approval(own.context)
    new = await new_merchant(base)
    await approve(base, new)
    bank = FileBank(base, "nacha", base.now())
    payout_id = await make_payout(bank.context, new)
    await send_payouts(bank.context)
    await decide(base, new, Item.BANK, accepted=False, reason="it belongs to somebody else")
    assert await bank.make() == ([], 1)
    assert (await payout_row(bank.context, payout_id))["held_at"] is not None


async def test_a_payment_that_is_in_a_file_cannot_be_withdrawn(own: Own) -> None:
    bank, payout_id = await in_a_file(own, "nacha")
    assert await bank.rail.books.withdraw([payout_id]) == []


async def test_a_statement_in_another_currency_pays_no_payout(own: Own) -> None:
    bank, payout_id = await in_a_file(own, "pain001")
    text = statement(booked("DBIT", "123.45", payout_id.hex)).replace(b'Ccy="USD"', b'Ccy="JPY"')
    paid, returned, unknown = await record_report(bank.context, bank.rail, read_camt053(text))
    assert (paid, returned, len(unknown)) == (0, 0, 1)


async def test_an_amount_that_no_payment_can_have_is_shown_to_a_person_and_the_other_entries_are_recorded(
    own: Own,
) -> None:
    bank, payout_id = await in_a_file(own, "pain001")
    large, paid = (booked("DBIT", amount, payout_id.hex) for amount in ("9" * 18, "123.45"))
    entries = read_camt053(statement(large, paid))
    assert await record_report(bank.context, bank.rail, entries) == (1, 0, entries[:1])


async def test_a_return_with_the_trace_number_of_another_bank_fits_no_payment(own: Own) -> None:
    bank, payout_id = await in_a_file(own, "nacha")
    back = await bank.returned(payout_id, "nacha")
    assert back.trace is not None
    other = replace(back, trace="99999999" + back.trace[8:])
    assert await record_report(bank.context, bank.rail, [other]) == (0, 0, [other])


async def test_an_incoming_payment_whose_reference_looks_like_a_payout_is_ignored(own: Own) -> None:
    bank = FileBank(own.context, "pain001")
    entries = read_camt053(statement(booked("CRDT", "9.99", uuid4().hex)))
    assert entries[0].unclear
    assert await record_report(bank.context, bank.rail, entries) == (0, 0, [])


async def test_an_unclear_entry_about_a_payout_is_shown_to_a_person(own: Own) -> None:
    bank, payout_id = await in_a_file(own, "pain001")
    entries = read_camt053(statement(booked("CRDT", "123.45", payout_id.hex)))
    assert await record_report(bank.context, bank.rail, entries) == (0, 0, entries)


async def test_a_payout_is_sent_as_soon_as_its_payment_is_in_a_file_and_nobody_is_alarmed_before(
    own: Own,
) -> None:
    await on_monday(own)
    bank = FileBank(own.context, "nacha")
    payout_id = await make_payout(bank.context, own.merchant.merchant_id)
    for _ in range(3):
        await send_payouts(bank.context)
        bank.at += timedelta(minutes=5)
    # The next try would be minutes away.
    await send_payouts(bank.context)
    assert await operator_list.count_troubled(own.context.pool, days_now(bank.context)) == 0
    await bank.make()
    await send_payouts(bank.context)
    assert (await payout_row(bank.context, payout_id))["status"] == "sent"
