"""`cuota bank`: files for a bank, and the reports that the bank sends back (CUOTA_BANK_RAIL=files)."""

from __future__ import annotations

import argparse
import codecs
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TypeVar

import asyncpg

from cuota.commands.common import acting, changes, one_line, require_database, run, show
from cuota.commands.parsers import Add
from cuota.core import money
from cuota.core.expected_failure import ExpectedFailure
from cuota.core.instant import read_day, timestamp
from cuota.core.payout.arrival import day_at_bank
from cuota.core.payout.bank_order import BadCredit
from cuota.core.payout.bank_report import BadReport, ChangeNotice, Reported
from cuota.core.payout.calendar import is_business_day, next_business_day
from cuota.core.payout.camt053 import read_camt053
from cuota.core.payout.nacha_return import read_nacha_return
from cuota.flows.afterwards import afterwards
from cuota.flows.context import Context
from cuota.flows.operator.log_action import OperatorNote, log_action
from cuota.flows.payout.bank_files import MadeFiles, make_files, record_report
from cuota.rails.bank.file_books import BankFile, QueuedPayment
from cuota.rails.bank.files import FileBankRail
from cuota.rails.load import NoSuchRail

MOST_SHOWN = 100
MOST_AHEAD = timedelta(days=30)
"""How far ahead the day of a file may be."""
TO_DO = (
    "Their bank accounts are encrypted with a key that is not in CUOTA_SECRET_KEY or CUOTA_SECRET_KEY_OLD. Set CUOTA_SECRET_KEY_OLD to"
    " that key, or use a machine that has it, and run cuota bank make again. If the key is lost, enter the merchant's account"
    " again (cuota merchant bank NAME --routing N --account N): when it takes effect, cuota bank make stops this payment, and the next"
    " payout pays it."
)
# The byte order marks of UTF-8 and UTF-16. Only XML begins with one.
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
T = TypeVar("T")


def _with(
    flow: Callable[[Context, FileBankRail], Awaitable[T]],
    note: Callable[[Context], OperatorNote] | None = None,
) -> T:
    """Run a flow with the rail of bank files, and log it. Raises NoSuchRail if the settings name another one."""
    require_database()

    async def go(context: Context) -> T:
        for bank in context.rails.banks:
            if isinstance(bank.rail, FileBankRail):
                return await flow(context, bank.rail)
        raise NoSuchRail(
            "CUOTA_BANK_RAIL is not files, and CUOTA_BANK_RAILS_KEPT does not name files, so there are no bank files."
        )

    return run(go, note)


class BadDay(ExpectedFailure):
    """The bank cannot pay on this day. The text says why."""


class NoSuchFile(ExpectedFailure):
    """There is no such file, or it cannot be read. The text says which."""


def make(options: argparse.Namespace) -> int:
    """`cuota bank make`: write every due file. A payment is put into only one file. Exit 1 if an account cannot be decrypted."""

    async def flow(context: Context, rail: FileBankRail) -> tuple[list[BankFile], MadeFiles, int]:
        today = day_at_bank(context.now())
        effective: date = options.effective or next_business_day(today)
        _require_soon(effective, today)
        try:
            result = await make_files(context, rail, effective)
        except BadCredit as bad:
            raise NoSuchRail(f"No file was written: {bad}.") from None
        except asyncpg.UniqueViolationError:
            raise NoSuchRail("Another command is writing a file. Try again shortly.") from None
        made = await rail.books.files(max(len(result.numbers), 1))
        for each in (file for file in made if file.number in result.numbers):
            # The numbers are known only now. The entry of the command itself was written before.
            with afterwards("bank.made in the operator's log"):
                await log_action(context, acting(), _made(each))
        waiting, _ = await rail.books.waiting()
        return made, result, waiting - len(result.unreadable)

    latest, result, waiting = _with(
        flow, changes("bank.make", "files for the bank", effective=options.effective)
    )
    made = [file for file in latest if file.number in result.numbers]
    nothing = "No file was written." if waiting > 0 or result.unreadable else "No payment waits for a file."
    # A command that was killed may have written a file that nobody has sent to the bank.
    before = [f"The latest file is {_line(file)}" for file in latest]
    lines = [_line(file) for file in made] or [nothing, *before]
    if made:
        lines.append(f"Print a file with: cuota bank file {made[0].number} > FILE")
    if result.stopped:
        lines.append(
            f"{result.stopped} payments were stopped, because their payouts are held (see Payouts to release) or their account was replaced."
        )
    if waiting > 0:
        lines.append(
            f"{waiting} payments wait for a later file. See why with: cuota payouts --status created"
        )
    show(options, [_facts(file) for file in made], lines)
    for line in _unreadable(result.unreadable):
        print(line, file=sys.stderr)
    return 1 if result.unreadable else 0


def _require_soon(effective: date, today: date) -> None:
    """Raise BadDay for a day that must be a typing error. A file cannot be made again, and NACHA payments of the past count as paid."""
    if effective < today:
        raise BadDay(f"{effective} is over: at the bank, today is {today}. No file was written.")
    if effective > today + MOST_AHEAD:
        raise BadDay(
            f"{effective} is more than {MOST_AHEAD.days} days ahead: at the bank, today is {today}. No file was written."
        )


def _unreadable(payments: Sequence[QueuedPayment]) -> list[str]:
    if not payments:
        return []
    shown = [
        f"Payout {each.payout_id} of {money.text_of(each.amount)} to {one_line(each.name)} stays in the queue."
        for each in payments[:MOST_SHOWN]
    ]
    more = [f"And {len(payments) - MOST_SHOWN} more."] if len(payments) > MOST_SHOWN else []
    return [*shown, *more, TO_DO]


def files(options: argparse.Namespace) -> int:
    """`cuota bank files`: list the latest files, and the payments that wait for the next file."""

    async def flow(context: Context, rail: FileBankRail) -> tuple[list[BankFile], tuple[int, int]]:
        del context
        return await rail.books.files(MOST_SHOWN), await rail.books.waiting()

    found, (payments, amount) = _with(flow)
    waits = f"{payments} payments of {money.text_of(amount)} wait for the next file (cuota bank make)."
    facts = {
        "files": [_facts(file) for file in found],
        "waiting": {"payments": payments, "amount": money.text_of(amount)},
    }
    show(options, facts, [*(_line(file) for file in found), waits])
    return 0


def file(options: argparse.Namespace) -> int:
    """`cuota bank file N`: print a file, the same each time."""

    async def flow(context: Context, rail: FileBankRail) -> str:
        del context
        text = await rail.books.content(options.number)
        if text is None:
            raise NoSuchFile(f"There is no bank file {options.number}. List them with: cuota bank files")
        return text

    sys.stdout.write(_with(flow, changes("bank.file", f"print bank file {options.number}")))
    return 0


def report(options: argparse.Namespace) -> int:
    """`cuota bank report FILE`: record a bank's report. Exit 1 if an entry of the report fits no payment."""
    try:
        found, notices = _read(options.file.read_bytes())
    except OSError as bad:
        why = "no such file" if isinstance(bad, FileNotFoundError) else (bad.strerror or str(bad)).lower()
        raise NoSuchFile(f"Cannot read {options.file}: {why}. Nothing was recorded.") from None
    except BadReport as bad:
        raise NoSuchFile(f"Nothing was recorded. {bad}") from None

    async def flow(context: Context, rail: FileBankRail) -> tuple[int, int, list[Reported]]:
        return await record_report(context, rail, found)

    note = changes("bank.report", f"report of the bank: {options.file.name}", entries=len(found))
    paid, returned, unknown = _with(flow, note)
    facts = {
        "paid": paid,
        "returned": returned,
        "unknown": [_name(each) for each in unknown],
        "changes": [f"{each.trace} {each.code} {each.corrected}" for each in notices],
    }
    lines = [f"{paid} payments were paid, {returned} came back. Payouts follow within minutes."]
    lines += [_problem(each) for each in unknown]
    lines += [
        f"The bank asks for corrected details ({each.code}) of the payment {each.trace}: {each.corrected}"
        for each in notices
    ]
    show(options, facts, lines)
    return 1 if unknown else 0


def _read(content: bytes) -> tuple[list[Reported], list[ChangeNotice]]:
    if content.lstrip()[:1] == b"<" or content.startswith(_MARKS):
        return read_camt053(content), []
    return read_nacha_return(content.decode("ascii", "replace"))


def _problem(each: Reported) -> str:
    if each.unclear:
        return f"Nothing was recorded; ask the bank what happened to this payment: {_name(each)}"
    return f"No payment of this amount: {_name(each)}"


def _name(each: Reported) -> str:
    named = each.payout_id or each.trace or f"file {each.file_number}"
    currency = "" if each.currency == money.CURRENCY else f" {each.currency}"
    what = each.reason or ("unclear" if each.unclear else "paid")
    return f"{named} {money.text_of(each.amount)}{currency} {what}"


def _made(file: BankFile) -> OperatorNote:
    after = {
        "effective": file.effective.isoformat(),
        "payments": str(file.payments),
        "amount": money.text_of(file.amount),
    }
    return OperatorNote("bank.made", f"bank file {file.number}", "", after=after)


def _facts(file: BankFile) -> dict[str, object]:
    return {
        "number": file.number,
        "format": file.format,
        "madeAt": timestamp(file.made_at),
        "effective": file.effective.isoformat(),
        "payments": file.payments,
        "amount": money.text_of(file.amount),
        "paid": file.paid,
        "returned": file.returned,
    }


def _line(file: BankFile) -> str:
    return (
        f"file {file.number} ({file.format}), {timestamp(file.made_at)}, to be paid on {file.effective}:"
        f" {file.payments} payments, {money.text_of(file.amount)}; {file.paid} paid, {file.returned} returned"
    )


def _business_day(text: str) -> date:
    day = read_day(text)
    if day is None:
        raise argparse.ArgumentTypeError(f"{text} is not a date such as 2026-12-01")
    if not is_business_day(day):
        raise argparse.ArgumentTypeError(
            f"{text} is not a business day for banks. The next one is {next_business_day(day)}"
        )
    return day


def _number(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,17}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text} is not the number of a file")
    return int(text)


def register(add: Add) -> None:
    """Register the commands of the `cuota bank` group."""
    making = add("make", make, "write a file with all payments that wait for one")
    making.add_argument(
        "--effective",
        type=_business_day,
        metavar="DATE",
        help="when the bank pays (default: the next business day)",
    )
    add("files", files, "list the latest files and what waits for the next one")
    one = add("file", file, "print a file", json=False)
    one.add_argument("number", type=_number, metavar="NUMBER")
    reading = add("report", report, "read a bank statement (camt.053) or a NACHA file of returns")
    reading.add_argument("file", type=Path, metavar="FILE")
