"""`cuota books` and `cuota merchant adjust`: show the trial balance, and correct a merchant's balance by hand."""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from cuota.commands.common import cents, changes, require_database, run, show
from cuota.commands.parsers import Add
from cuota.core import money
from cuota.core.instant import read_day, timestamp
from cuota.core.payout.arrival import BANK_ZONE
from cuota.db.payout.books import AccountBalance, balances
from cuota.flows.context import Context
from cuota.flows.payout.adjust_merchant import adjust_merchant


def books(options: argparse.Namespace) -> int:
    """`cuota books`: exit 1 if the debits and credits are not equal."""
    require_database()
    day: date | None = options.as_of

    async def flow(context: Context) -> tuple[datetime, list[AccountBalance]]:
        # The time is the end of the day, or now.
        zone = BANK_ZONE if options.bank_time else UTC
        before = (
            context.now() if day is None else datetime.combine(day + timedelta(days=1), time(0), tzinfo=zone)
        )
        return before, await balances(context.pool, before)

    before, found = run(flow)
    totals = _totals(found)
    facts: dict[str, Any] = {
        "before": timestamp(before),
        "accounts": [_facts(each) | {"balance": money.text_of(each.balance)} for each in found],
        "totals": [
            {"currency": currency, "debits": money.text_of(debits), "credits": money.text_of(total)}
            for currency, (debits, total) in totals.items()
        ],
    }
    rows = [
        ("account", "currency", "debits", "credits", "balance"),
        *(tuple(account.values()) for account in facts["accounts"]),
        *(("total", *total.values(), "") for total in facts["totals"]),
    ]
    lines = [f"{a:22} {c:8} {d:>16} {e:>16} {b:>16}".rstrip() for a, c, d, e, b in rows]
    closes = all(debits == total for debits, total in totals.values())
    verdict = (
        "Debits and credits are equal." if closes else "Debits and credits are NOT equal: run cuota verify."
    )
    show(options, facts, [f"All rows of the ledger before {timestamp(before)}", *lines, verdict])
    return 0 if closes else 1


def _totals(found: list[AccountBalance]) -> dict[str, tuple[int, int]]:
    """Return the sums of all debits and of all credits, by currency."""
    totals: dict[str, tuple[int, int]] = {}
    for each in found:
        debits, total = totals.get(each.currency, (0, 0))
        totals[each.currency] = (debits + each.debits, total + each.credits)
    return totals


def _facts(each: AccountBalance) -> dict[str, str]:
    debits, total = money.text_of(each.debits), money.text_of(each.credits)
    return {"account": each.account.value, "currency": each.currency, "debits": debits, "credits": total}


def adjust(options: argparse.Namespace) -> int:
    """`cuota merchant adjust`."""
    merchant, adjustment_id = run(
        lambda context: adjust_merchant(context, options.merchant, options.amount, options.reason),
        changes("money.adjust", options.merchant, options.reason, amount=money.text_of(options.amount)),
        merchant=options.merchant,
    )
    amount = money.text_of(options.amount)
    facts = {
        "merchantId": str(merchant.merchant_id),
        "adjustmentId": str(adjustment_id),
        "amount": amount,
        "currency": merchant.currency,
        "reason": options.reason.strip(),
    }
    does = "reduces" if options.amount < 0 else "raises"
    show(
        options,
        facts,
        [f"The adjustment of {amount} {merchant.currency} {does} the next payout of {merchant.name}."],
    )
    return 0


def _day(text: str) -> date:
    day = read_day(text)
    if day is None or not 2000 <= day.year <= 2200:
        raise argparse.ArgumentTypeError(f"{text} is not a date such as 2026-06-30")
    return day


def register(add: Add) -> None:
    """`cuota books`."""
    parser = add(
        "books", books, "print what every account of the ledger holds, with the totals of debits and credits"
    )
    parser.add_argument(
        "--as-of", type=_day, metavar="DATE", help="at the end of this day in UTC (default: now)"
    )
    parser.add_argument(
        "--bank-time",
        action="store_true",
        help="with --as-of: the day ends at midnight in New York, as the months of the page Losses do",
    )


def register_merchant(add: Add) -> None:
    """`cuota merchant adjust`."""
    parser = add(
        "adjust", adjust, "correct by hand what a merchant is paid; the reason is shown to the merchant"
    )
    parser.add_argument("merchant", metavar="NAME_OR_ID")
    parser.add_argument(
        "--amount", type=cents, required=True, help="what the next payout changes by; -5.00 reduces it"
    )
    parser.add_argument(
        "--reason", required=True, metavar="TEXT", help="the reference of the settlement line"
    )
