"""`cuota payouts`: the payouts of all merchants, with their problems."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

from cuota.commands.common import require_database, run, show
from cuota.commands.parsers import Add
from cuota.commands.place import called
from cuota.core import money
from cuota.core.instant import timestamp
from cuota.core.payout.late import PaymentDays, has_problem, is_unconfirmed, problem_note
from cuota.core.payout.payout import PayoutStatus
from cuota.db.cluster.living import LivingNodes
from cuota.db.payout import operator_list
from cuota.db.payout.operator_list import ListedPayout, PausedMerchant
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.payout.days import days_now
from cuota.flows.payout.send_payouts import NO_BANK_RAIL

MOST_SHOWN = 1000


@dataclass(frozen=True, slots=True)
class PayoutsSeen:
    """The data that the command shows: the newest payouts, and older ones that a person must look at."""

    rail: str | None
    payouts: list[ListedPayout]
    older: list[ListedPayout]
    paused: list[PausedMerchant]
    days: PaymentDays
    every: LivingNodes


def payouts(options: argparse.Namespace) -> int:
    """`cuota payouts`: exit 1 if an operator must check something, so that a nightly job notices."""
    require_database()
    status = None if options.status is None else PayoutStatus(options.status)

    async def read(context: Context) -> PayoutsSeen:
        seen = await read_payouts(context, options.merchant, status)
        return _only_problems(seen) if options.problems else seen

    seen = run(read)
    facts = {
        "bankRail": seen.rail,
        "paused": [
            {"merchantId": str(each.merchant_id), "merchant": each.name, "since": timestamp(each.since)}
            for each in seen.paused
        ],
        "payouts": [_facts(each, seen.days) for each in (*seen.payouts, *seen.older)],
        "unreachableNodes": seen.every.left_out,
    }
    show(options, facts, _lines(seen))
    waits = seen.rail is None and any(each.status is PayoutStatus.CREATED for each in seen.payouts)
    trouble = seen.every.left_out or seen.older or any(_is_trouble(each, seen.days) for each in seen.payouts)
    return 1 if waits or seen.paused or trouble else 0


async def read_payouts(context: Context, named: str | None, status: PayoutStatus | None) -> PayoutsSeen:
    """Return the newest payouts of one merchant or of all, and the older ones of all merchants that a person must look at."""
    every, days, rail = LivingNodes(context.pool), days_now(context), context.rails.bank
    merchant = None if named is None else await find_merchant(context, named)
    older: list[ListedPayout] = []
    if merchant is None:
        found = await operator_list.payouts(every, status, MOST_SHOWN)
        shown = {each.payout_id for each in found}
        troubled = await operator_list.troubled(every, days, MOST_SHOWN) if len(found) == MOST_SHOWN else []
        older = [each for each in troubled if each.payout_id not in shown and status in {None, each.status}]
    else:
        found = await operator_list.payouts_of(context.pool, merchant.merchant_id, status, MOST_SHOWN)
    paused = await operator_list.paused(every, None if merchant is None else merchant.merchant_id)
    return PayoutsSeen(None if rail is None else rail.name, found, older, paused, days, every)


def _only_problems(seen: PayoutsSeen) -> PayoutsSeen:
    """Leave out the payouts that nobody must look at. Without a bank rail, payouts that were not sent stay in the list."""
    found = [
        each
        for each in (*seen.payouts, *seen.older)
        if _is_trouble(each, seen.days) or (seen.rail is None and each.status is PayoutStatus.CREATED)
    ]
    return replace(seen, payouts=found, older=[])


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


def _lines(seen: PayoutsSeen) -> list[str]:
    lines = [] if seen.every.notice is None else [seen.every.notice]
    lines += [] if seen.rail is not None else [NO_BANK_RAIL]
    lines += [
        f"Payouts of {each.name} have been paused since {timestamp(each.since)}, because one came back. They continue when another bank"
        f" account takes effect: {called()} merchant bank {each.merchant_id} --routing N --account N"
        for each in seen.paused
    ]
    lines += [_line(each, seen.days) for each in seen.payouts]
    if len(seen.payouts) == MOST_SHOWN:
        lines.append(f"These are the newest {MOST_SHOWN}. To see others, add --merchant or --status.")
    if seen.older:
        lines += ["Older payouts that you must look at:", *(_line(each, seen.days) for each in seen.older)]
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
    parser.add_argument("--problems", action="store_true", help="only payouts that a person must look at")
