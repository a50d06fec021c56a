"""`cuota bank make` on a machine that cannot decrypt every account: the other payments go out, and a hold stops a claimed payment."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from cuota.core.payout.bank_account import CHANGE_DELAY
from cuota.db.vault import Vault
from cuota.flows.payout.bank_files import make_files
from cuota.flows.payout.change_bank_account import change_bank_account
from cuota.flows.payout.send_payouts import send_payouts
from cuota.rails.bank import file_books
from cuota.rails.bank.file_books import FileBooks
from cuota.rails.bank.files import FileBankRail
from cuota.rails.settings import BankFileSettings, RailSettings
from flows.payout.test_bank_files import CENTS, DAY, US, FileBank, on_monday
from flows.payout.test_held_again import hold
from support.own_service import Own
from support.payouts import CHANGED, make_payout, payout_row, returned_lines

OTHER = b"x" * 32


def without_the_key(bank: FileBank) -> FileBankRail:
    """Return the rail of a machine whose secret key is another one."""
    settings = RailSettings(bank="files", bank_files=BankFileSettings("nacha", US))
    return FileBankRail(settings, bank.context.pool, Vault(OTHER, (), b"h" * 32), lambda: bank.at)


async def queued(own: Own, count: int) -> tuple[FileBank, list[UUID]]:
    """Return the bank, and payouts whose payments wait for a file."""
    await on_monday(own)
    bank = FileBank(own.context, "nacha")
    found = [await make_payout(bank.context, own.merchant.merchant_id) for _ in range(count)]
    await send_payouts(bank.context)
    return bank, found


async def lose_the_key(own: Own, bank: FileBank, payout_id: UUID) -> None:
    """Encrypt the account of this queued payment with a key that no machine has."""
    foreign = Vault(OTHER, (), b"h" * 32)
    async with own.owner() as owner:
        await owner.execute(
            "UPDATE bank_files.payments SET account = $2 WHERE payout_id = $1",
            payout_id,
            foreign.encrypt("123456789", f"bank-payment:{payout_id}"),
        )


async def die_after_the_claim(bank: FileBank, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a command die between the claim of the payments and the writing of their file."""

    def dies(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setitem(file_books.FORMATS, "nacha", dies)
        with pytest.raises(KeyboardInterrupt):
            await bank.make()


async def test_a_payment_that_cannot_be_decrypted_stays_in_the_queue_and_the_others_go_out(own: Own) -> None:
    bank, (lost, *readable) = await queued(own, 3)
    await lose_the_key(own, bank, lost)
    made = await make_files(bank.context, bank.rail, DAY)
    assert (made.numbers, made.stopped) == ([1], 0)
    assert [(each.payout_id, each.name, each.amount) for each in made.unreadable] == [
        (lost, own.merchant.name, CENTS)
    ]
    assert await bank.rail.books.waiting() == (1, CENTS)
    text = await bank.rail.books.content(1) or ""
    assert [str(each) in text for each in (lost, *readable)] == [False, True, True]
    # Another run says it again. It makes no file, because nothing else waits.
    again = await make_files(bank.context, bank.rail, DAY)
    assert (again.numbers, [each.payout_id for each in again.unreadable]) == ([], [lost])


async def test_a_payment_of_an_unfinished_file_that_cannot_be_decrypted_does_not_stop_the_others(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank, (lost, readable) = await queued(own, 2)
    await die_after_the_claim(bank, monkeypatch)
    await lose_the_key(own, bank, lost)
    made = await make_files(bank.context, bank.rail, DAY)
    assert (made.numbers, [each.payout_id for each in made.unreadable]) == ([1], [lost])
    text = await bank.rail.books.content(1) or ""
    assert [str(each) in text for each in (lost, readable)] == [False, True]
    assert await bank.rail.books.waiting() == (1, CENTS)


async def test_a_machine_with_the_key_puts_the_payments_of_an_unfinished_file_into_the_same_number(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank, ids = await queued(own, 2)
    await die_after_the_claim(bank, monkeypatch)
    lacks = await make_files(bank.context, without_the_key(bank), DAY)
    assert (lacks.numbers, {each.payout_id for each in lacks.unreadable}) == ([], set(ids))
    assert await bank.rail.books.waiting() == (2, 2 * CENTS)
    assert await bank.make() == ([1], 0)
    text = await bank.rail.books.content(1) or ""
    assert all(text.count(str(each)) == 1 for each in ids)


async def test_a_hold_stops_a_payment_that_a_killed_command_had_claimed(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank, [payout_id] = await queued(own, 1)
    await die_after_the_claim(bank, monkeypatch)
    bank.at += timedelta(minutes=1)
    await hold(bank.context, own.merchant.merchant_id)
    assert await bank.make() == ([], 1)
    assert (await payout_row(bank.context, payout_id))["held_at"] is not None
    assert await bank.rail.books.find(payout_id) is None


async def test_after_the_key_is_lost_a_new_account_lets_the_next_payout_pay_the_amount(own: Own) -> None:
    bank, [lost] = await queued(own, 1)
    await lose_the_key(own, bank, lost)
    await change_bank_account(bank.context, own.merchant.merchant_id, CHANGED["pays"])
    bank.at += CHANGE_DELAY + timedelta(hours=2)
    assert await bank.make() == ([], 1)
    await send_payouts(bank.context)
    assert (await payout_row(bank.context, lost))["status"] == "returned"
    assert await returned_lines(bank.context, lost) == [CENTS]


class Interrupted:
    """The database of a command. Another command takes a payment out of the file right before this one writes its text."""

    def __init__(self, bank: FileBank, taken: UUID) -> None:
        self.bank, self.taken, self.done = bank, taken, False
        self.fetch, self.fetchrow = bank.context.pool.fetch, bank.context.pool.fetchrow
        self.append = bank.context.pool.append

    async def execute(self, sql: str, *values: object) -> str:
        if "SET content" in sql and not self.done:
            self.done = True
            await self.bank.rail.books.put_back([self.taken])
        return await self.bank.context.pool.execute(sql, *values)


async def test_a_payment_that_another_command_took_out_of_a_file_is_written_only_once(own: Own) -> None:
    bank, ids = await queued(own, 2)
    books = FileBooks(Interrupted(bank, ids[0]), bank.context.vault, US)
    await books.make("nacha", bank.at, DAY)
    await bank.make()
    texts = [await books.content(file.number) or "" for file in await books.files(10)]
    for each in ids:
        assert sum(text.count(str(each)) for text in texts) == 1
    assert [file.number for file in await books.files(10)] == [2, 1]
