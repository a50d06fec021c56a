"""The queue of a bank that takes files: each payment is in one file, and each file is made once."""

from __future__ import annotations

import asyncio
from datetime import date, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from cuota.core.payout.bank_order import Credit, Originator
from cuota.core.payout.bank_report import Reported
from cuota.core.payout.nacha import MOST_CENTS, MOST_FILE_CENTS, trace_of
from cuota.rails.bank import file_books
from cuota.rails.bank.file_books import FileBooks
from support.own_service import Own

US = Originator("Cuota Payments Inc.", "1234567890", "First Bank", "011000015", "000111222333")
DAY = date(2026, 11, 24)


@pytest.fixture
def books(own: Own) -> FileBooks:
    return FileBooks(own.context.pool, own.context.vault, US)


def credit(amount: int = 10_005) -> Credit:
    return Credit(uuid4(), 0, "A shop", "021000021", "123456789", amount, "USD")


async def _die_after_the_claim(books: FileBooks, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a command die after it has claimed the payments, and before it has written their file."""

    def dies(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setitem(file_books.FORMATS, "nacha", dies)
        with pytest.raises(KeyboardInterrupt):
            await books.make("nacha", now, DAY)


def _day_in(content: str | None) -> date:
    """Return the day on which a NACHA file asks the bank to pay."""
    batch_header = next(line for line in (content or "").splitlines() if line.startswith("5"))
    return datetime.strptime(batch_header[69:75], "%y%m%d").date()  # noqa: DTZ007 - a day has no time zone


async def test_each_payment_is_in_one_file_and_a_repeated_order_changes_nothing(
    own: Own, books: FileBooks
) -> None:
    now = own.context.now()
    first, second = credit(), credit(200)
    for each in (first, second, first):
        await books.order(each, now)
    assert await books.waiting() == (2, 10_205)
    assert await books.make("nacha", now, DAY) == [1]
    assert await books.make("nacha", now, DAY) == []
    third = credit(300)
    await books.order(third, now)
    await books.order(first, now)
    assert await books.make("pain001", now, DAY) == [2]
    texts = [await books.content(1) or "", await books.content(2) or ""]
    assert [str(first.payout_id) in text for text in texts] == [True, False]
    assert third.payout_id.hex in texts[1]
    assert [(file.number, file.payments, file.amount) for file in await books.files(10)] == [
        (2, 1, 300),
        (1, 2, 10_205),
    ]
    assert await books.content(3) is None


async def test_a_command_that_died_after_its_claim_is_finished_by_the_next_with_the_same_payments(
    own: Own, books: FileBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, ordered = own.context.now(), credit()
    await books.order(ordered, now)

    await _die_after_the_claim(books, now, monkeypatch)
    found = await books.find(ordered.payout_id)
    assert found is not None
    assert (
        found.file_number is None
    )  # the payments are claimed, but no file exists that anybody could have sent
    assert await books.files(10) == []
    later = credit(77)
    await books.order(later, now)
    assert await books.make("nacha", now + timedelta(days=1), DAY + timedelta(days=1)) == [1, 2]
    assert [(file.number, file.effective, file.amount) for file in await books.files(10)] == [
        (2, DAY + timedelta(days=1), 77),
        (1, DAY + timedelta(days=1), 10_005),
    ]


async def test_a_file_that_is_finished_days_later_asks_the_bank_to_pay_on_a_later_day(
    own: Own, books: FileBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, later, ordered = own.context.now(), DAY + timedelta(days=6), credit()
    await books.order(ordered, now)
    await _die_after_the_claim(books, now, monkeypatch)
    assert await books.make("nacha", now + timedelta(days=6), later) == [1]
    found = await books.find(ordered.payout_id)
    assert found is not None
    assert found.effective == later
    assert _day_in(await books.content(1)) == later


async def test_of_many_commands_with_different_days_each_file_has_the_day_that_is_stored_with_it(
    own: Own, books: FileBooks
) -> None:
    now = own.context.now()
    for number in range(40):
        await books.order(credit(100 + number), now)
    days = [DAY + timedelta(days=number) for number in range(8)]
    await asyncio.gather(*(books.make("nacha", now, day) for day in days), return_exceptions=True)
    await books.make("nacha", now, DAY)
    for file in await books.files(50):
        assert _day_in(await books.content(file.number)) == file.effective


async def require_one_file_each(books: FileBooks, payments: list[Credit]) -> None:
    """Check that each payment is in one file, and that the numbers of the files have no gap."""
    files = await books.files(50)
    texts = [await books.content(file.number) or "" for file in files]
    for each in payments:
        assert sum(str(each.payout_id) in text for text in texts) == 1
    assert sorted(file.number for file in files) == list(range(1, len(files) + 1))


async def test_of_many_commands_at_once_no_payment_gets_into_two_files(own: Own, books: FileBooks) -> None:
    now = own.context.now()
    payments = [credit(100 + number) for number in range(40)]
    for each in payments:
        await books.order(each, now)
    await asyncio.gather(*(books.make("nacha", now, DAY) for _ in range(8)), return_exceptions=True)
    await books.make("nacha", now, DAY)
    await require_one_file_each(books, payments)


async def test_payments_that_are_put_back_while_many_commands_write_are_in_one_file_each(
    own: Own, books: FileBooks
) -> None:
    now = own.context.now()
    payments = [credit(100 + number) for number in range(40)]
    for each in payments:
        await books.order(each, now)
    ids = [each.payout_id for each in payments]
    takes = (books.put_back(ids[first::7]) for first in range(7))
    makes = (books.make("nacha", now, DAY, ids[first:]) for first in range(7))
    await asyncio.gather(
        *(step for pair in zip(makes, takes, strict=True) for step in pair), return_exceptions=True
    )
    await books.make("nacha", now, DAY)
    await require_one_file_each(books, payments)
    assert sum(file.payments for file in await books.files(50)) == 40


async def test_a_large_queue_becomes_several_files(
    own: Own, books: FileBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_books, "MOST_PAYMENTS", 3)
    for number in range(7):
        await books.order(credit(100 + number), own.context.now())
    assert await books.make("nacha", own.context.now(), DAY) == [1, 2, 3]
    assert sorted(file.payments for file in await books.files(10)) == [1, 3, 3]


async def test_a_bank_s_report_is_recorded_once_and_only_for_the_right_amount(
    own: Own, books: FileBooks
) -> None:
    now, ordered = own.context.now(), credit()
    await books.order(ordered, now)
    assert (
        await books.report(Reported(10_005, payout_id=ordered.payout_id), now) == []
    )  # the payment is in no file yet
    await books.make("nacha", now, DAY)
    number = int((await books.content(1) or "").split("\r\n")[2][39:54])
    trace = trace_of(US, Credit(ordered.payout_id, number, "", "", "", 1, "USD"))
    assert await books.report(Reported(10_006, payout_id=ordered.payout_id), now) == []
    assert await books.report(Reported(10_005, payout_id=uuid4()), now) == []
    assert await books.report(Reported(10_005, file_number=1), now) == [ordered.payout_id]
    assert await books.report(Reported(10_005, "R03", trace=trace), now + timedelta(days=1)) == [
        ordered.payout_id
    ]
    assert await books.report(Reported(10_005, "R02", trace=trace), now + timedelta(days=2)) == [
        ordered.payout_id
    ]
    found = await books.find(ordered.payout_id)
    assert found is not None
    assert (found.paid_at, found.returned_at, found.reason) == (now, now + timedelta(days=1), "R03")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE bank_files.files SET effective = effective + 1",
        "UPDATE bank_files.payments SET amount = amount + 1",
        "UPDATE bank_files.payments SET file_number = NULL",
    ],
)
async def test_a_written_file_and_its_payments_never_change(
    own: Own, books: FileBooks, own_database: dict[str, Any], change: str
) -> None:
    await books.order(credit(), own.context.now())
    await books.make("nacha", own.context.now(), DAY)
    connection = await asyncpg.connect(**own_database)
    try:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute(change)
    finally:
        await connection.close()


async def test_account_numbers_are_encrypted_in_the_queue_and_in_the_file(
    own: Own, books: FileBooks, own_database: dict[str, Any]
) -> None:
    await books.order(credit(), own.context.now())
    await books.make("nacha", own.context.now(), DAY)
    connection = await asyncpg.connect(**own_database)
    try:
        rows = [
            *await connection.fetch("SELECT * FROM bank_files.payments"),
            *await connection.fetch("SELECT * FROM bank_files.files"),
        ]
    finally:
        await connection.close()
    assert "123456789" in (await books.content(1) or "")
    for value in (value for row in rows for value in row.values()):
        assert b"123456789" not in (value if isinstance(value, bytes) else str(value).encode())


async def test_payments_that_exceed_the_sum_of_one_file_go_into_two(own: Own, books: FileBooks) -> None:
    now = own.context.now()
    for _ in range(101):
        await books.order(credit(MOST_CENTS), now)
    assert await books.make("nacha", now, DAY) == [1, 2]
    files = await books.files(10)
    assert [(each.number, each.payments) for each in files] == [(2, 1), (1, 100)]
    assert all(each.amount <= MOST_FILE_CENTS for each in files)
