"""`cuota merchant suspend` and `resume`: stop a merchant's new orders, and allow them again."""

from __future__ import annotations

import argparse

from cuota.commands.common import changes, run, show
from cuota.commands.parsers import Add
from cuota.core.reason import LONGEST_REASON
from cuota.flows.merchant.suspend_merchant import resume_merchant, suspend_merchant


def _reason(text: str) -> str:
    words = " ".join(text.split())
    if not words or len(words) > LONGEST_REASON:
        raise argparse.ArgumentTypeError(f"must have 1 to {LONGEST_REASON} characters")
    return words


def merchant_suspend(options: argparse.Namespace) -> int:
    """`cuota merchant suspend`."""
    hold = "held" if options.hold_payouts else None
    done = run(
        lambda context: suspend_merchant(context, options.merchant, hold=options.hold_payouts),
        changes("merchant.suspend", options.merchant, options.reason, payouts=hold),
        merchant=options.merchant,
    )
    facts = {
        "merchantId": str(done.merchant.merchant_id),
        "suspended": True,
        "payoutsHeld": options.hold_payouts,
        "payoutsStopped": done.stopped,
    }
    lines = [
        f"{done.merchant.name} is suspended. New orders are refused within 5 seconds; everything else continues."
    ]
    if options.hold_payouts:
        lines.append(
            f"Payouts are held. {done.stopped} payouts that were not sent to the bank yet wait for a release."
        )
    show(options, facts, lines)
    return 0


def merchant_resume(options: argparse.Namespace) -> int:
    """`cuota merchant resume`."""
    merchant = run(
        lambda context: resume_merchant(context, options.merchant),
        changes("merchant.resume", options.merchant, options.reason),
        merchant=options.merchant,
    )
    facts = {"merchantId": str(merchant.merchant_id), "suspended": False}
    line = f"{merchant.name} takes orders again, within 5 seconds. Payouts that are held stay held until each is released."
    show(options, facts, [line])
    return 0


def register(add: Add) -> None:
    """Register both commands."""
    suspend = add(
        "suspend", merchant_suspend, "stop a merchant's new orders; captures, refunds and plans continue"
    )
    resume = add("resume", merchant_resume, "let a suspended merchant take orders again")
    for parser in (suspend, resume):
        parser.add_argument("merchant", metavar="NAME_OR_ID")
        parser.add_argument("--reason", required=True, type=_reason, help="why, for the operator's log")
    suspend.add_argument(
        "--hold-payouts",
        action="store_true",
        help="also hold payouts, until each is released in the dashboard",
    )
