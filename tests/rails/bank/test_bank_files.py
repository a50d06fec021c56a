"""Files for banks, checked with other authors' programs."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from cuota.core import money
from cuota.core.payout.bank_order import BadCredit, Credit, Originator
from cuota.core.payout.nacha import MOST_CENTS, nacha_file, trace_of
from cuota.core.payout.pain001 import pain001_file
from support.bank import readers
from support.bank.statements import booked, nacha_returns, statement

FILES = 1_000
US = Originator("Cuota Payments Inc.", "1234567890", "First Bank of Springfield", "011000015", "000111222333")
MADE_AT, EFFECTIVE = datetime(2026, 11, 23, 9, 5, tzinfo=UTC), date(2026, 11, 24)
ROUTINGS = ("021000021", "011401533", "091000019", "122105155")
NAMES = (
    "Zoë's Bikes & Co", "<b>Müller</b> GmbH", "日本の店", "A" * 200, "Tab\tand\nline", 'Quote " \' ; --', "Ünï-Çødé 9",
)  # fmt: skip


def some_files(seed: int) -> list[list[Credit]]:
    """The payments of 1,000 files, of one to seven payments each."""
    chance = random.Random(seed)
    number = 0
    files = []
    for _ in range(FILES):
        payments = []
        for _ in range(chance.randint(1, 7)):
            number += chance.randint(1, 3)
            payments.append(
                Credit(
                    UUID(int=chance.getrandbits(128)),
                    number,
                    chance.choice(NAMES),
                    chance.choice(ROUTINGS),
                    str(chance.randint(1000, 10**17 - 1)),
                    chance.choice((1, 99, 100_00, chance.randint(1, MOST_CENTS // 10))),
                    "USD",
                )
            )
        files.append(payments)
    return files


def test_a_file_that_is_made_in_the_evening_has_the_day_of_the_bank() -> None:
    # 20:30 on Monday in New York. With Tuesday as its day, the file would ask for a payment on the day of the file: same-day ACH.
    made_at = datetime(2026, 11, 24, 1, 30, tzinfo=UTC)
    payment = Credit(UUID(int=1), 1, "Shop", ROUTINGS[0], "123456", 100, "USD")
    header, batch = nacha_file(US, [payment], 1, made_at, EFFECTIVE).split("\r\n")[:2]
    assert header[23:33] == "2611232030"
    assert batch[63:75] == "261123" + "261124"


async def test_two_ach_readers_find_exactly_the_written_payments_in_1000_files() -> None:
    files = some_files(17)
    texts = [nacha_file(US, payments, n, MADE_AT, EFFECTIVE) for n, payments in enumerate(files, 1)]
    for text in texts:
        assert (
            len(text.split("\r\n")) % 10 == 1
        )  # the file has a multiple of ten lines and ends with a line feed
    by_python = (await readers.read(nacha=texts))["nacha"]
    by_node = await readers.read_with_node(texts)
    for payments, python, node in zip(files, by_python, by_node, strict=True):
        written = [
            (
                trace_of(US, p),
                p.routing,
                p.account,
                p.amount,
                f"RMR*IK*{p.payout_id}**{money.text_of(p.amount)}\\",
            )
            for p in payments
        ]
        (batch,) = python["batches"]
        assert [python_entry(entry) for entry in batch["entries"]] == written
        assert [node_entry(entry) for entry in node["batches"][0]["entries"]] == written
        total = sum(p.amount for p in payments)
        footer = node["file"]["footer"]
        assert (footer["totalCredit"], footer["totalDebit"]) == (total, 0)
        assert footer["entryAndAddendaCount"] == 2 * len(payments)
        assert footer["entryHash"] == sum(int(p.routing[:8]) for p in payments) % 10**10


def python_entry(entry: dict[str, Any]) -> tuple[str, str, str, int, str]:
    """Return trace number, routing number, account, cents and addendum, as carta-ach read them."""
    detail, (addendum,) = entry["entry_detail"], entry["addenda"]
    routing = detail["recv_dfi_id"] + detail["check_digit"]
    account, amount = detail["dfi_acnt_num"].strip(), int(detail["amount"])
    return detail["trace_num"], routing, account, amount, addendum["pmt_rel_info"].strip()


def node_entry(entry: dict[str, Any]) -> tuple[str, str, str, int, str]:
    """Return the same fields, as @ach/ach read them."""
    return (
        f"{entry['traceNumber']:015d}",
        f"{entry['receivingDFIIdentification']:08d}{entry['checkDigit']}",
        entry["dfiAccount"],
        entry["amount"],
        entry["addenda"]["info"],
    )


async def test_the_iso_schema_accepts_1000_files_and_finds_every_amount() -> None:
    texts = [
        pain001_file(US, payments, n, MADE_AT, EFFECTIVE) for n, payments in enumerate(some_files(18), 1)
    ]
    problems = (await readers.read(pain001=texts))["pain001"]
    assert [found for found in problems if found] == []
    assert (await readers.read(pain001=[texts[0].replace("USABA", "TOOLONG"), texts[0]]))["pain001"][0] != []


@pytest.mark.parametrize(("amount", "currency"), [(MOST_CENTS + 1, "USD"), (0, "USD"), (100, "CAD")])
def test_a_payment_that_does_not_fit_into_a_nacha_file_is_refused(amount: int, currency: str) -> None:
    payment = Credit(UUID(int=1), 1, "Shop", ROUTINGS[0], "1234", amount, currency)
    with pytest.raises(BadCredit):
        nacha_file(US, [payment], 1, MADE_AT, EFFECTIVE)


async def test_other_programs_read_the_samples_of_bank_reports_like_our_readers() -> None:
    """The tests of our readers use handmade samples. Other programs must find the same values in them."""
    payout = UUID(int=42).hex
    content = statement(booked("DBIT", "100.05", payout), booked("CRDT", "100.05", payout, reason="AC01"))
    (found,) = (await readers.read(camt053=[content.decode()]))["camt053"]
    assert found.count(payout) == 2
    assert "AC01" in found
    assert "100.05" in found
    (returned,) = await readers.read_with_node([nacha_returns(("799R03", "011000010000042", 12_345))])
    (entry,) = returned["batches"][0]["entries"]
    assert (entry["transactionCode"], entry["amount"], entry["addenda"]["type"]) == ("21", 12_345, "99")
