"""`cuota payouts`: the payouts of all merchants, with their problems."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from cuota.commands.common import require_database, run, show
from cuota.commands.parsers import Add
from cuota.commands.place import called
from cuota.core import money
from cuota.core.instant import timestamp
from cuota.core.payout.late import PaymentDays, has_problem, is_unconfirmed, problem_note
from cuota.core.payout.payout import PayoutStatus
from cuota.db.payout import operator_list
from cuota.db.payout.operator_list import ListedPayout, PausedMerchant
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.payout.days import days_now
from cuota.flows.payout.send_payouts import NO_BANK_RAIL

MOST_SHOWN = 1000


@dataclass(frozen=True, slots=True)
class _Seen:
    """The data that the command shows."""

    rail: str | None
    payouts: list[ListedPayout]
    paused: list[PausedMerchant]
    days: PaymentDays


def payouts(options: argparse.Namespace) -> int:
    """`cuota payouts`: exit 1 if an operator must check something, so that a nightly job notices."""
    require_database()
    status = None if options.status is None else PayoutStatus(options.status)

    async def flow(context: Context) -> _Seen:
        merchant = None if options.merchant is None else await find_merchant(context, options.merchant)
        whose = None if merchant is None else merchant.merchant_id
        found = await operator_list.payouts(context.pool, whose, status, MOST_SHOWN)
        rail = context.rails.bank
        return _Seen(
            None if rail is None else rail.name,
            found,
            await operator_list.paused(context.pool, whose),
            days_now(context),
        )

    seen = run(flow)
    facts = {
        "bankRail": seen.rail,
        "paused": [
            {"merchantId": str(each.merchant_id), "merchant": each.name, "since": timestamp(each.since)}
            for each in seen.paused
        ],
        "payouts": [_facts(each, seen.days) for each in seen.payouts],
    }
    show(options, facts, _lines(seen))
    waits = seen.rail is None and any(each.status is PayoutStatus.CREATED for each in seen.payouts)
    return 1 if waits or seen.paused or any(_is_trouble(each, seen.days) for each in seen.payouts) else 0


def _is_trouble(each: ListedPayout, days: PaymentDays) -> bool:
    late = is_unconfirmed(each.status, each.arrival_date, days, each.confirm_by)
    return late or has_problem(each.problem, each.arrival_date, days)


def _facts(each: ListedPayout, days: PaymentDays) -> dict[str, object]:
    return {
        "payoutId": str(each.payout_id),
        "merchantId": str(each.merchant_id),
        "merchant": each.merchant,
        "number": each.number,
        "status": each.status.value,
        "amount": money.text_of(each.amount),
        "currency": each.currency,
        "closedAt": timestamp(each.closed_at),
        "arrivalDate": each.arrival_date.isoformat(),
        "overdue": is_unconfirmed(each.status, each.arrival_date, days, each.confirm_by),
        "bankAccount": {"last4": each.last4},
        "tries": each.tries,
        "nextTryAt": None if each.try_at is None else timestamp(each.try_at),
        "problem": each.problem,
        "reason": each.return_reason,
        "heldAt": None if each.held_at is None else timestamp(each.held_at),
    }


def _lines(seen: _Seen) -> list[str]:
    lines = [] if seen.rail is not None else [NO_BANK_RAIL]
    lines += [
        f"Payouts of {each.name} have been paused since {timestamp(each.since)}, because one came back. They continue when another bank"
        f" account takes effect: {called()} merchant bank {each.merchant_id} --routing N --account N"
        for each in seen.paused
    ]
    lines += [_line(each, seen.days) for each in seen.payouts]
    if len(seen.payouts) == MOST_SHOWN:
        lines.append(f"These are the newest {MOST_SHOWN}. To see others, add --merchant or --status.")
    return lines if seen.payouts else [*lines, "No such payouts."]


def _line(each: ListedPayout, days: PaymentDays) -> str:
    overdue = is_unconfirmed(each.status, each.arrival_date, days, each.confirm_by)
    line = (
        f"{each.payout_id}  {each.status.value:8}  {money.text_of(each.amount):>12}  {each.arrival_date}  ****{each.last4}"
        f"  {each.merchant}"
    )
    notes = [
        f"HELD since {timestamp(each.held_at)}: release it in the dashboard" if each.held_at else "",
        f"returned: {each.return_reason}" if each.return_reason else "",
        f"OVERDUE: the bank has not confirmed the payment; asked {each.tries} times" if overdue else "",
        problem_note(each.problem, each.tries, each.arrival_date, days),
    ]
    return "  ".join([line, *(f"({note})" for note in notes if note)])


def register(add: Add) -> None:
    """Register `cuota payouts`."""
    parser = add("payouts", payouts, "list payouts: status, amount, arrival, and what went wrong")
    parser.add_argument("--merchant", metavar="NAME_OR_ID", help="only the payouts of this merchant")
    parser.add_argument(
        "--status", choices=[status.value for status in PayoutStatus], help="only payouts with this status"
    )
