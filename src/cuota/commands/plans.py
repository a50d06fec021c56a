"""`cuota plan hardship`: changes an agreed plan for a consumer who cannot pay as planned."""

from __future__ import annotations

import argparse
import re
from datetime import date

from cuota.commands.blocks import day, reason
from cuota.commands.common import acting, cents, run, show
from cuota.commands.parsers import Add
from cuota.core import money
from cuota.core.dates import day as shown_day
from cuota.core.expected_failure import WrongUsage
from cuota.core.instant import timestamp
from cuota.core.order.change_plan import left_of
from cuota.core.plan.change import ChangeKind, PlanChange, PlannedPayment
from cuota.core.plan.hardship import (
    CannotChange,
    HardshipRequest,
    MoveDates,
    PausePlan,
    SmallerPayments,
    WaiveFee,
)
from cuota.core.risk.explanation import counted
from cuota.db.risk import decisions
from cuota.flows.context import Context
from cuota.flows.operator.log_action import OperatorNote, log_action, log_refusal, logged
from cuota.flows.operator.note_change import note_of_change
from cuota.flows.order.find_order import order_id_of
from cuota.flows.plan.change_plan import PlanPreview, agree_on_change, preview_change

DEFAULT_EVERY = 14
_DAYS = re.compile(r"([0-9]{1,4})d?", re.ASCII)
_MOVE = re.compile(r"([0-9]{1,2})=(\S+)", re.ASCII)


def plan_hardship(options: argparse.Namespace) -> int:
    """`cuota plan hardship`: shows the plan before and after; without --dry-run, changes it."""
    request = _request(options)

    async def flow(context: Context) -> tuple[PlanPreview, PlanChange | None]:
        order_id = await order_id_of(context, options.order)
        merchant_id = await decisions.whose(context.pool, order_id)
        assert merchant_id is not None, "an order has a merchant"
        try:
            shown = await preview_change(context, merchant_id, order_id, request)
        except CannotChange as refused:
            if not options.dry_run:
                note = OperatorNote("plan.change", f"Order {order_id}", options.reason, order_id)
                await log_action(context, acting(), note)
                await log_refusal(context, acting(), note, str(refused))
            raise
        if options.dry_run:
            return shown, None

        async def change(context: Context) -> PlanChange:
            ids, by, mark = (merchant_id, order_id), acting().words, shown.found.before.mark
            return await agree_on_change(context, *ids, request, by=by, reason=options.reason, mark=mark)

        return shown, await logged(context, acting(), note_of_change(shown, options.reason), change)

    shown, made = run(flow)
    show(options, _facts(shown, made), _lines(shown, made))
    return 0


def _request(options: argparse.Namespace) -> HardshipRequest:
    given = [name for name in ("every", "first") if getattr(options, name) is not None]
    if given and options.payments is None:
        raise WrongUsage(
            f"Nothing was changed. --{given[0]} belongs to --payments: give it only with --payments."
        )
    if options.pause is not None:
        return PausePlan(options.pause)
    if options.move:
        return MoveDates(dict(options.move))
    if options.payments is not None:
        if options.first is None:
            raise WrongUsage("--payments also needs --first, the day of the first payment.")
        every = DEFAULT_EVERY if options.every is None else options.every
        return SmallerPayments(options.payments, every, options.first)
    return WaiveFee(None if options.waive == "all" else options.waive)


def _lines(shown: PlanPreview, made: PlanChange | None) -> list[str]:
    before, after, currency = _plans(shown)
    head = "Dry run: nothing was changed." if made is None else f"Changed: change {made.number} of this plan."
    return [
        f"{head} {_said(shown)}",
        "Before:",
        *(_line(each, currency) for each in before),
        "After:",
        *(_line(each, currency) for each in after),
        *([] if made is None else ["The consumer gets a message with the new plan."]),
    ]


def _said(shown: PlanPreview) -> str:
    """Return the change in one sentence for the operator. The consumer gets a sentence of its own."""
    _, after, currency = _plans(shown)
    new = shown.new
    if new.kind is ChangeKind.PAUSED:
        return f"The consumer's payments pause for {counted(new.days, 'day')}."
    if new.kind is ChangeKind.DATES_MOVED:
        return "Payments move to later days."
    if new.kind is ChangeKind.SMALLER_PAYMENTS:
        return f"What is left is divided into {counted(len(after), 'smaller payment')}."
    return f"{money.shown(new.waived, currency)} of the fee for the plan is waived."


def _plans(shown: PlanPreview) -> tuple[tuple[PlannedPayment, ...], tuple[PlannedPayment, ...], str]:
    before = shown.found.before
    return left_of(before.plan), left_of(shown.new.plan), before.order.currency


def _line(each: PlannedPayment, currency: str) -> str:
    return f"  {each.number}. {money.shown(each.total, currency)} on {shown_day(each.due_on, year=True)}"


def _facts(shown: PlanPreview, made: PlanChange | None) -> dict[str, object]:
    before, after, _ = _plans(shown)
    return {
        "dryRun": made is None,
        "kind": shown.new.kind.value,
        "changeId": None if made is None else str(made.change_id),
        "changedAt": None if made is None else timestamp(made.changed_at),
        "textHash": None if made is None else made.text_hash,
        "waived": money.text_of(shown.new.waived),
        "before": [_payment(each) for each in before],
        "after": [_payment(each) for each in after],
    }


def _payment(each: PlannedPayment) -> dict[str, object]:
    return {"number": each.number, "amount": money.text_of(each.total), "dueDate": each.due_on.isoformat()}


def _days(text: str) -> int:
    found = _DAYS.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text} is not a number of days such as 14d")
    return int(found[1])


def _moved(text: str) -> tuple[int, date]:
    found = _MOVE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text} is not a payment and its new day, such as 3=2026-12-19")
    return int(found[1]), day(found[2])


def _waived(text: str) -> int | str:
    return text if text == "all" else cents(text)


def register(add: Add) -> None:
    """Register the commands of the group `cuota plan`."""
    parser = add(
        "hardship",
        plan_hardship,
        "change the plan of a consumer in hardship, within the policy of the settings",
    )
    parser.add_argument("order", metavar="ORDER", help="the order's id, or the merchant's reference")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument(
        "--pause", type=_days, metavar="DAYS", help="charge nothing for this many days, such as 14d"
    )
    kind.add_argument(
        "--move",
        type=_moved,
        action="append",
        metavar="N=DAY",
        help="move payment N to a later day; give it once for each payment",
    )
    kind.add_argument(
        "--payments", type=int, metavar="N", help="replace what is left by N equal, smaller payments"
    )
    kind.add_argument(
        "--waive",
        type=_waived,
        metavar="AMOUNT",
        help="waive this much of the unpaid fee for the plan, or `all`",
    )
    parser.add_argument(
        "--every",
        type=_days,
        metavar="DAYS",
        help=f"with --payments: days between two payments (default {DEFAULT_EVERY})",
    )
    parser.add_argument(
        "--first", type=day, metavar="DAY", help="with --payments: the day of the first payment"
    )
    parser.add_argument("--reason", type=reason, required=True, help="why, for the operator's log")
    parser.add_argument(
        "--dry-run", action="store_true", help="show the plan before and after, and change nothing"
    )
