"""`cuota explain`, `decide` and `policy`: explain decisions, repeat them, and simulate another policy."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from cuota.commands.common import require_database, run, show
from cuota.commands.parsers import Add
from cuota.commands.policies import policy_check, policy_show
from cuota.core import money
from cuota.core.instant import BadInstant, read_instant, timestamp
from cuota.core.risk.explanation import because, counted
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.risk import explain_order as words
from cuota.flows.risk import review_decisions as review
from cuota.flows.risk.explain_order import Explanation
from cuota.flows.risk.keep_policy import read_policy
from cuota.flows.risk.review_decisions import DecisionTally, Difference, Replayed, Simulated

Explain = Callable[[Context, Any], Awaitable[Explanation]]


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not an id") from None


def _time(text: str) -> str:
    try:
        read_instant(text)
    except BadInstant as bad:
        raise argparse.ArgumentTypeError(str(bad)) from None
    return text


def _moment(text: str | None, now: datetime, otherwise: datetime) -> datetime:
    """Return the instant that an option names: a date, a date with time and zone, or a span before `now` such as `30d`.

    Returns `otherwise` if the option was not given. Raises BadInstant.
    """
    if text is None:
        return otherwise
    target = read_instant(text)
    if target.instant is not None:
        return target.instant
    assert target.span is not None
    try:
        return now - target.span
    except OverflowError:
        raise BadInstant(f"{text} is too long: {text} ago is before the year 1.") from None


class _NoLetter(argparse.Action):
    """Refuses `--letter` in `explain order` and `explain plan`: a letter is about one decision."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """End with a usage error that names the right command."""
        del namespace, values
        parser.error(f"{option_string} is only for decisions: cuota explain decision ID --letter")


def _explain(flow: Explain) -> Callable[[argparse.Namespace], int]:
    def command(options: argparse.Namespace) -> int:
        require_database()
        explanation = run(lambda context: flow(context, options.id))
        show(options, explanation.facts, explanation.lines)
        return 0

    return command


def explain_decision(options: argparse.Namespace) -> int:
    """`cuota explain decision`."""
    return _explain(words.letter_of if options.letter else words.explain_decision)(options)


async def _merchant_id(context: Context, name: str | None) -> UUID | None:
    return None if name is None else (await find_merchant(context, name)).merchant_id


def decide_again(options: argparse.Namespace) -> int:
    """`cuota decide --replay`: exit 1 if repeating a decision gives a different result."""
    require_database()

    async def flow(context: Context) -> Replayed:
        now = context.now()
        since, until = _moment(options.since, now, review.BEGINNING), _moment(options.until, now, review.END)
        return await review.replay(context, since, until, await _merchant_id(context, options.merchant))

    done = run(flow)
    facts = {
        "decisions": done.decisions,
        "referrals": done.referrals,
        "madeBeforeFactsWereKept": done.before,
        "differences": [_difference(each) for each in done.differences],
    }
    lines = [line for each in done.differences for line in _difference_lines(each)]
    referrals = f" and {counted(done.referrals, 'referral')}" if done.referrals else ""
    summary = f"{counted(done.decisions, 'decision')}{referrals} repeated; {_verb(len(done.differences), 'differ')}."
    if not done.decisions + done.referrals:
        summary = "There is no decision in this range."
    if done.before:
        were = "was" if done.before == 1 else "were"
        summary += f" {counted(done.before, 'decision')} {were} made before Cuota stored facts and cannot be repeated."
    show(options, facts, [*lines, summary])
    return 1 if done.differences else 0


def _verb(number: int, verb: str) -> str:
    return f"{number} {verb}{'s' if number == 1 else ''}"


def _difference(each: Difference) -> dict[str, object]:
    return {
        "decisionId": None if each.made.referred else str(each.made.decision_id),
        "orderId": str(each.made.order_id),
        "policyVersion": each.made.policy_version,
        "values": words.difference_facts(each.values),
    }


def _difference_lines(each: Difference) -> list[str]:
    made = each.made
    what = f"referral of order {made.order_id}" if made.referred else f"decision {made.decision_id}"
    head = f"{what} of {timestamp(made.decided_at)} by policy {made.policy_version}:"
    return [head, *words.difference_lines(each.values)]


def policy_simulate(options: argparse.Namespace) -> int:
    """`cuota policy simulate`. It changes nothing."""
    policy, _ = read_policy(options.file)
    require_database()

    async def flow(context: Context) -> Simulated:
        now = context.now()
        since, until = _moment(options.since, now, review.BEGINNING), _moment(options.until, now, review.END)
        return await review.simulate(
            context, policy, since, until, await _merchant_id(context, options.merchant)
        )

    found = run(flow)
    facts = {
        "version": policy.version,
        "madeBeforeFactsWereKept": found.before,
        "was": {
            "approved": _tally(found.approved),
            "declined": _tally(found.declined),
            "referred": _tally(found.referred),
        },
        "would": {
            "approve": _tally(found.would_approve),
            "decline": _tally(found.would_decline),
            "refer": _tally(found.would_refer),
        },
        "newlyApproved": _tally(found.newly_approved),
        "newlyReferred": _tally(found.newly_referred),
        "newlyDeclined": {**_tally(found.newly_declined), "reasons": dict(found.reasons.most_common())},
    }
    show(options, facts, _simulated(policy.version, found))
    return 0


def _tally(tally: DecisionTally) -> dict[str, object]:
    return {
        "orders": tally.orders,
        "amount": money.text_of(tally.amount),
        "unpaid": money.text_of(tally.unpaid),
    }


def _simulated(version: str, found: Simulated) -> list[str]:
    left_out = f"Not included: {counted(found.before, 'order')} decided before Cuota stored facts."
    if not found.approved.orders + found.declined.orders + found.referred.orders:
        return ["There is no order in this range.", *([left_out] if found.before else [])]
    rows = (
        ("approved", found.approved), ("declined", found.declined), ("referred, and not decided", found.referred),
        (f"{version} approves", found.would_approve), (f"{version} declines", found.would_decline),
        (f"{version} refers", found.would_refer), ("  newly approved", found.newly_approved),
        ("  newly declined", found.newly_declined), ("  newly referred", found.newly_referred),
    )  # fmt: skip
    width = max(len(name) for name, _ in rows)
    lines = [f"{'':{width}}  {'orders':>8}  {'amount':>14}  {'overdue now':>14}"]
    lines += [
        f"{name:{width}}  {tally.orders:>8}  {money.shown(tally.amount):>14}  {money.shown(tally.unpaid):>14}"
        for name, tally in rows
    ]
    lines += [f"  {count} for {because(code)}" for code, count in found.reasons.most_common()]
    if found.before:
        lines.append(left_out)
    return [
        *lines,
        "The facts are those stored when each order was decided, with the time windows of the policy then in force.",
        "Orders that this policy would have declined still count in the history of later orders.",
        "Whether newly approved orders would have been paid is not known.",
    ]


def _range(parser: argparse.ArgumentParser, *, since_required: bool) -> None:
    text = "a date (2026-12-25), a date with time and zone (2026-12-25T09:30Z), or a time span before now (90m, 36h, 30d, 6w)"
    parser.add_argument("--since", required=since_required, type=_time, metavar="DATE", help=text)
    parser.add_argument(
        "--until", type=_time, metavar="DATE", help="the end, written the same way (default: now)"
    )
    parser.add_argument("--merchant", metavar="NAME", help="a merchant's name or id (default: all merchants)")


def register_explain(add: Add) -> None:
    """`cuota explain ...`."""
    parser = add("decision", explain_decision, "explain a risk decision: its facts and its reasons")
    parser.add_argument("id", type=_id, metavar="ID")
    parser.add_argument(
        "--letter",
        action="store_true",
        help="print the letter that tells the consumer why, with the lender and brand that the last service used",
    )
    for name, flow, text in (
        ("order", words.explain_order, "explain what happened to an order, and every decision about it"),
        ("plan", words.explain_plan, "explain an order's plan: each installment and its state"),
    ):
        parser = add(name, _explain(flow), text)
        parser.add_argument(
            "id", metavar="ID_OR_REFERENCE", help="the order's id, or the merchant's reference"
        )
        parser.add_argument("--letter", nargs=0, action=_NoLetter, help=argparse.SUPPRESS)


def register_policy(add: Add) -> None:
    """`cuota policy ...`."""
    parser = add(
        "show", policy_show, "print the stored text of a policy; without a version, the policy in force"
    )
    parser.add_argument("version", nargs="?", metavar="VERSION")
    parser = add("check", policy_check, "check whether a policy can be used; name the line of an error")
    parser.add_argument("file", type=Path, metavar="FILE")
    parser = add("simulate", policy_simulate, "show what another policy would have decided; change nothing")
    parser.add_argument("file", type=Path, metavar="FILE")
    _range(parser, since_required=True)


def register(add: Add) -> None:
    """`cuota decide`."""
    parser = add("decide", decide_again, "repeat stored decisions and show each one that differs")
    parser.add_argument("--replay", action="store_true", required=True, help="nothing is stored or changed")
    _range(parser, since_required=False)
