"""The tables of the `files` rail: payments and bank files.

A payment is in only one file; a file is stored before it is sent.

Every step is one statement, so a process that dies leaves a step either done or not begun. If a process dies between claiming
the payments and writing the file, the next call writes a file with the same number and the same payments, for its own days. Before
that, a payment may be taken out of the file again. Each change of an unwritten file gives it a later `made_at`, so a process that has
read it before does not write it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from cuota.core.expected_failure import ExpectedFailure
from cuota.core.payout.bank_order import Credit, Originator
from cuota.core.payout.bank_report import Reported
from cuota.core.payout.nacha import MOST_CENTS, MOST_FILE_CENTS, nacha_file
from cuota.core.payout.pain001 import pain001_file
from cuota.rails.stores import RailDatabase, RailVault

MOST_PAYMENTS = 10_000
"""The limit for one file. The rest goes into the next file."""

MOST_IN_A_PAYMENT = {"nacha": MOST_CENTS, "pain001": MOST_FILE_CENTS}
"""The limit for one payment in cents, by format. A larger payment waits for a file of the other format."""

_MOST_STORED = 2**63 - 1  # a larger amount is in no column, and no payment has it

FORMATS: dict[str, Callable[[Originator, Sequence[Credit], int, datetime, date], str]] = {
    "nacha": nacha_file,
    "pain001": pain001_file,
}

_ORDER = """INSERT INTO bank_files.payments (payout_id, name, routing, account, amount, currency, ordered_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING"""
_FIND = """SELECT p.amount, p.file_number, p.paid_at, p.returned_at, p.reason, f.effective, f.format, f.content IS NOT NULL AS written
    FROM bank_files.payments p LEFT JOIN bank_files.files f ON f.number = p.file_number WHERE p.payout_id = $1"""
# The file's number is the primary key. If two commands run at once, one fails and claims nothing.
# A file takes as many payments as its sum allows. The rest goes into the next file.
# A file that lost all its payments before it was written is used first, so that the numbers have no gap.
_CLAIM = """WITH waiting AS (
    SELECT p.payout_id FROM (
        SELECT payout_id, sum(amount) OVER (ORDER BY order_number) AS total FROM bank_files.payments
        WHERE file_number IS NULL AND amount <= $7 AND ($5::uuid[] IS NULL OR payout_id = ANY ($5)) ORDER BY order_number LIMIT $4
    ) q JOIN bank_files.payments p ON p.payout_id = q.payout_id
    WHERE q.total <= $6 AND p.file_number IS NULL ORDER BY p.order_number FOR UPDATE OF p
), unused AS MATERIALIZED (
    SELECT f.number, f.made_at FROM bank_files.files f WHERE f.content IS NULL
        AND NOT EXISTS (SELECT FROM bank_files.payments p WHERE p.file_number = f.number) ORDER BY f.number LIMIT 1
), again AS (
    UPDATE bank_files.files f SET format = $1, made_at = greatest($2, f.made_at + interval '1 microsecond'), effective = $3 FROM unused
    WHERE f.number = unused.number AND f.made_at = unused.made_at AND f.content IS NULL AND EXISTS (SELECT FROM waiting)
    RETURNING f.number
), new AS (
    INSERT INTO bank_files.files (number, format, made_at, effective)
    SELECT coalesce((SELECT max(number) FROM bank_files.files), 0) + 1, $1, $2, $3
    WHERE EXISTS (SELECT FROM waiting) AND NOT EXISTS (SELECT FROM again) RETURNING number
), made AS (
    SELECT number FROM again UNION ALL SELECT number FROM new
)
UPDATE bank_files.payments p SET file_number = made.number FROM made, waiting WHERE p.payout_id = waiting.payout_id"""
_UNWRITTEN = (
    "SELECT number, format, made_at, effective FROM bank_files.files WHERE content IS NULL ORDER BY number"
)
_PAYMENTS = """SELECT payout_id, order_number, name, routing, account, amount, currency FROM bank_files.payments
    WHERE file_number = $1 ORDER BY order_number"""
# A file that an earlier command left unwritten was not sent, so its days may still change. Without this, a command that finishes the file
# days later would ask the bank to pay in the past, and a NACHA payment would count as paid before its file is sent.
_RENEW = """UPDATE bank_files.files SET made_at = greatest($1, made_at + interval '1 microsecond'), effective = $2
    WHERE content IS NULL AND effective < $2"""
# The update of the file waits for a command that is writing it, and afterwards finds its content. The other way around, that command finds
# another `made_at`, and writes nothing.
_PUT_BACK = """WITH unwritten AS (
    UPDATE bank_files.files f SET made_at = f.made_at + interval '1 microsecond' WHERE f.content IS NULL
        AND EXISTS (SELECT FROM bank_files.payments p WHERE p.file_number = f.number AND p.payout_id = ANY ($1)) RETURNING f.number
)
UPDATE bank_files.payments p SET file_number = NULL FROM unwritten
    WHERE p.file_number = unwritten.number AND p.payout_id = ANY ($1)"""
# The file must still be as it was read: another command may have renewed its days, or taken a payment out of it.
_WRITE = """UPDATE bank_files.files SET content = $2
    WHERE number = $1 AND content IS NULL AND made_at = $3 AND effective = $4"""
_FILES = """SELECT f.number, f.format, f.made_at, f.effective, count(p.payout_id) AS payments,
        coalesce(sum(p.amount), 0)::bigint AS amount, count(p.paid_at) AS paid, count(p.returned_at) AS returned
    FROM bank_files.files f LEFT JOIN bank_files.payments p ON p.file_number = f.number
    WHERE f.content IS NOT NULL GROUP BY f.number ORDER BY f.number DESC LIMIT $1"""
_CONTENT = "SELECT content FROM bank_files.files WHERE number = $1 AND content IS NOT NULL"
_WAITING = """SELECT count(*) AS payments, coalesce(sum(amount), 0)::bigint AS amount FROM bank_files.payments
    WHERE file_number IS NULL"""
# Also the payments of a file that is not written yet: no bank has seen them.
_QUEUED = """SELECT payout_id, order_number, name, routing, account, amount, currency FROM bank_files.payments WHERE file_number IS NULL
    UNION ALL SELECT p.payout_id, p.order_number, p.name, p.routing, p.account, p.amount, p.currency
    FROM bank_files.files f JOIN bank_files.payments p ON p.file_number = f.number WHERE f.content IS NULL ORDER BY order_number"""
_WITHDRAW = (
    "DELETE FROM bank_files.payments WHERE file_number IS NULL AND payout_id = ANY ($1) RETURNING payout_id"
)
_PAID = """UPDATE bank_files.payments SET paid_at = coalesce(paid_at, $4)
    WHERE payout_id = $1 AND amount = $2 AND currency = $3 AND file_number IS NOT NULL RETURNING payout_id"""
_RETURNED = """UPDATE bank_files.payments SET returned_at = coalesce(returned_at, $4), reason = coalesce(reason, $5)
    WHERE payout_id = $1 AND amount = $2 AND currency = $3 AND file_number IS NOT NULL RETURNING payout_id"""
# The report has only seven digits of the order's number, which repeat after ten million payments. So take the latest
# payment with this amount.
_BY_TRACE = """SELECT payout_id FROM bank_files.payments WHERE order_number % 10000000 = $1 AND amount = $2
    AND file_number IS NOT NULL ORDER BY order_number DESC LIMIT 1"""
_PAID_FILE = """UPDATE bank_files.payments SET paid_at = coalesce(paid_at, $4) WHERE file_number = $1
    AND $2 = (SELECT sum(p.amount) FROM bank_files.payments p WHERE p.file_number = $1 AND p.currency = $3) RETURNING payout_id"""


@dataclass(frozen=True, slots=True)
class Ordered:
    """The state of one payment.

    `effective` is the day on which the bank was asked to pay. `file_number`, `format` and `effective` are None before the file is
    written.
    """

    amount: int
    file_number: int | None
    format: str | None
    effective: date | None
    paid_at: datetime | None
    returned_at: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class QueuedPayment:
    """A payment that no written file has, in cents. `readable`: this process can decrypt its account."""

    payout_id: UUID
    name: str
    amount: int
    readable: bool


@dataclass(frozen=True, slots=True)
class BankFile:
    """A written file. The amount is in cents."""

    number: int
    format: str
    made_at: datetime
    effective: date
    payments: int
    amount: int
    paid: int
    returned: int


class FileBooks:
    """Reads and writes the tables of the rail."""

    def __init__(self, books: RailDatabase, vault: RailVault, originator: Originator) -> None:
        self._books = books
        self._vault = vault
        self._originator = originator

    async def order(self, credit: Credit, now: datetime) -> None:
        """Queue a payment for the next file. If the payment was ordered before, change nothing."""
        bound = _bound(credit.payout_id)
        await self._books.execute(
            _ORDER,
            credit.payout_id,
            credit.name,
            self._vault.encrypt(credit.routing, bound),
            self._vault.encrypt(credit.account, bound),
            credit.amount,
            credit.currency,
            now,
        )

    async def find(self, payout_id: UUID) -> Ordered | None:
        """Return the state of a payment, or None if it was never ordered."""
        row = await self._books.fetchrow(_FIND, payout_id)
        if row is None:
            return None
        number, kind, effective = (
            (row["file_number"], row["format"], row["effective"]) if row["written"] else (None, None, None)
        )
        return Ordered(
            row["amount"], number, kind, effective, row["paid_at"], row["returned_at"], row["reason"]
        )

    async def make(
        self, kind: str, now: datetime, effective: date, only: Sequence[UUID] | None = None
    ) -> list[int]:
        """Write all due files, and return their numbers. With `only`, the other queued payments stay in the queue.

        No file is made twice: raises UniqueViolation if another command is first.
        """
        await self._books.execute(_RENEW, now, effective)
        made = await self._write()
        limits = MOST_PAYMENTS, only, MOST_FILE_CENTS, MOST_IN_A_PAYMENT[kind]
        while await self._books.execute(_CLAIM, kind, now, effective, *limits) != "UPDATE 0":
            made += await self._write()
        return made

    async def queued(self) -> list[QueuedPayment]:
        """Return the payments that no written file has."""
        return [
            QueuedPayment(row["payout_id"], row["name"], row["amount"], self._credit(row) is not None)
            for row in await self._books.fetch(_QUEUED)
        ]

    async def put_back(self, payout_ids: Sequence[UUID]) -> None:
        """Take these payments out of files that are not written yet, so that they wait for the next file."""
        await self._books.execute(_PUT_BACK, payout_ids)

    async def withdraw(self, payout_ids: Sequence[UUID]) -> list[UUID]:
        """Take these payments out of the queue, and return them. A payment that is in a file stays there."""
        return await self._ids(_WITHDRAW, payout_ids)

    async def _write(self) -> list[int]:
        """Write the claimed files, and return their numbers.

        A file with a payment that this process cannot decrypt is left to the machine that claimed it.
        """
        written = []
        for row in await self._books.fetch(_UNWRITTEN):
            number = row["number"]
            payments = [self._credit(each) for each in await self._books.fetch(_PAYMENTS, number)]
            readable = [each for each in payments if each is not None]
            if not readable or len(readable) < len(payments):
                continue
            text = FORMATS[row["format"]](
                self._originator, readable, number, row["made_at"], row["effective"]
            )
            sealed = self._vault.encrypt(text, f"bank-file:{number}")
            await self._books.execute(_WRITE, number, sealed, row["made_at"], row["effective"])
            written.append(number)
        return written

    def _credit(self, row: Mapping[str, Any]) -> Credit | None:
        """Return a payment, or None if no key of this process fits."""
        bound = _bound(row["payout_id"])
        try:
            routing, account = (self._vault.decrypt(row[name], bound) for name in ("routing", "account"))
        except ExpectedFailure:
            return None
        return Credit(
            row["payout_id"], row["order_number"], row["name"], routing, account, row["amount"], row["currency"]
        )  # fmt: skip

    async def files(self, most: int) -> list[BankFile]:
        """Return the latest files."""
        return [BankFile(**row) for row in await self._books.fetch(_FILES, most)]

    async def waiting(self) -> tuple[int, int]:
        """Return how many payments wait for the next file, and their sum in cents."""
        row = await self._books.fetchrow(_WAITING)
        assert row is not None
        return row["payments"], row["amount"]

    async def content(self, number: int) -> str | None:
        """Return a file's text, the same each time, or None if there is no such file."""
        row = await self._books.fetchrow(_CONTENT, number)
        return None if row is None else self._vault.decrypt(row["content"], f"bank-file:{number}")

    async def report(self, reported: Reported, now: datetime) -> list[UUID]:
        """Record a bank's report, once. Return the payments of the report; none if the report is unclear or the amount differs."""
        if reported.unclear or not 0 < reported.amount <= _MOST_STORED:
            return []
        money = reported.amount, reported.currency
        if reported.file_number is not None:
            return await self._ids(_PAID_FILE, reported.file_number, *money, now)
        payout_id = reported.payout_id
        # The first eight digits of a trace number are those of the bank that sent the payment.
        if reported.trace is not None and reported.trace[:8] == self._originator.routing[:8]:
            row = await self._books.fetchrow(_BY_TRACE, int(reported.trace[-7:]), reported.amount)
            payout_id = row["payout_id"] if row is not None else None
        if payout_id is None:
            return []
        if reported.reason is None:
            return await self._ids(_PAID, payout_id, *money, now)
        return await self._ids(_RETURNED, payout_id, *money, now, reported.reason)

    async def _ids(self, sql: str, *values: object) -> list[UUID]:
        return [row["payout_id"] for row in await self._books.fetch(sql, *values)]


def _bound(payout_id: UUID) -> str:
    return f"bank-payment:{payout_id}"
