"""`cuota merchant terms`: the fees for captures, and the schedule of payouts."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, time

from cuota.commands.common import cents, changes, run, show
from cuota.commands.parsers import Add
from cuota.core import money
from cuota.core.instant import BadInstant, read_instant, timestamp
from cuota.core.payout.percent import percent_text, read_percent
from cuota.core.payout.terms import PayoutSchedule, RefundFee, SettlementTerms
from cuota.db.payout import terms
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.payout.change_terms import TermsChange, change_terms

MOST_FIXED = 100_000
MOST_DAYS = 365
_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)


def basis_points(text: str) -> int:
    """Read a percentage such as 5.9 or 5.90% as basis points."""
    points = read_percent(text)
    if points is None:
        raise argparse.ArgumentTypeError(
            f"{text} is not a percentage from 0 to 100 with at most two decimals, such as 5.9"
        )
    return points


def _fixed(text: str) -> int:
    amount = cents(text)
    if not 0 <= amount <= MOST_FIXED:
        raise argparse.ArgumentTypeError(f"{text} is not an amount from 0.00 to {money.text_of(MOST_FIXED)}")
    return amount


def _minimum(text: str) -> int:
    amount = cents(text)
    if amount < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative. Give 0 or more")
    return amount


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text} is not a number of days from 0 to {MOST_DAYS}")
    return int(text)


def _cutoff(text: str) -> time:
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text} is not a time of day such as 17:00")
    return time(int(found[1]), int(found[2]))


def terms_facts(terms: SettlementTerms) -> dict[str, object]:
    """Return one version by its JSON names. Percentages and amounts are texts with two decimals."""
    return {
        "version": terms.version,
        "validFrom": timestamp(terms.valid_from),
        "percent": percent_text(terms.percent),
        "fixed": money.text_of(terms.fixed),
        "refundFee": terms.refund_fee.value,
        "payout": terms.payout.value,
        "minimum": money.text_of(terms.minimum),
        "reserve": percent_text(terms.reserve),
        "reserveDays": terms.reserve_days,
        "cutoff": f"{terms.cutoff:%H:%M}",
        "timeZone": terms.time_zone,
    }


def _line(terms: SettlementTerms) -> str:
    reserve = (
        f"; {percent_text(terms.reserve)} % of captures are kept back for {terms.reserve_days} days"
        if terms.reserve
        else ""
    )
    return (
        f"version {terms.version}, from {terms.valid_from.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC: a capture costs"
        f" {percent_text(terms.percent)} % and {money.text_of(terms.fixed)}, on a refund the fee is {terms.refund_fee};"
        f" paid {terms.payout} at {terms.cutoff:%H:%M} ({terms.time_zone}), at least {money.text_of(terms.minimum)}{reserve}"
    )


def merchant_terms(options: argparse.Namespace) -> int:
    """`cuota merchant terms`: show the versions, or add one."""
    change = TermsChange(
        options.percent, options.fixed, options.refund_fee, options.payout, options.minimum, options.reserve,
        options.reserve_days, options.time_zone, options.cutoff,
    )  # fmt: skip
    valid_from: datetime | None = options.valid_from

    async def before(context: Context) -> dict[str, str]:
        merchant = await find_merchant(context, options.merchant)
        versions = await terms.read_all(context.pool, merchant.merchant_id)
        return change.words_before(versions[-1] if versions else None)

    merchant, found = run(
        lambda context: change_terms(context, options.merchant, change, valid_from),
        changes("merchant.terms", options.merchant, "", **change.words, validFrom=valid_from)
        if change.given
        else None,
        merchant=options.merchant,
        before=before,
    )
    facts = {"merchantId": str(merchant.merchant_id), "terms": [terms_facts(each) for each in found]}
    show(
        options,
        facts,
        [_line(each) for each in found] or ["No terms: captures cost nothing, and payouts are daily."],
    )
    return 0


def _instant(text: str) -> datetime:
    try:
        found = read_instant(text)
    except BadInstant as bad:
        raise argparse.ArgumentTypeError(str(bad)) from None
    if found.instant is None:
        raise argparse.ArgumentTypeError(f"{text} is a span. Give a date such as 2026-12-25")
    return found.instant


def register(add: Add) -> None:
    """Register the command in the `cuota merchant` group."""
    parser = add(
        "terms", merchant_terms, "show what captures cost a merchant and when it is paid, or add a version"
    )
    parser.add_argument("merchant", metavar="NAME_OR_ID")
    parser.add_argument("--percent", type=basis_points, metavar="P", help="of each capture, such as 5.9")
    parser.add_argument("--fixed", type=_fixed, metavar="AMOUNT", help="for each capture, such as 0.30")
    parser.add_argument(
        "--refund-fee",
        type=RefundFee,
        choices=list(RefundFee),
        help="on a refund: the fee is kept, its percentage is returned pro rata, or all of it is returned pro rata",
    )
    parser.add_argument("--payout", type=PayoutSchedule, choices=list(PayoutSchedule), help="how often")
    parser.add_argument("--minimum", type=_minimum, metavar="AMOUNT", help="a smaller payout waits")
    parser.add_argument(
        "--reserve",
        type=basis_points,
        metavar="P",
        help="percentage of the captures that is kept as a reserve",
    )
    parser.add_argument(
        "--reserve-days", type=_days, metavar="N", help="the number of days for which the reserve is kept"
    )
    parser.add_argument("--cutoff", type=_cutoff, metavar="HH:MM", help="when the day ends for payouts")
    parser.add_argument("--time-zone", metavar="ZONE", help="of the cutoff, such as America/New_York")
    parser.add_argument(
        "--valid-from",
        type=_instant,
        metavar="TIME",
        help="when the version begins (default, and at the earliest: in 30 seconds)",
    )
