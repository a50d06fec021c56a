"""`cuota merchant approvals` and `cuota approvals report`: change the mode of Advanced Approvals, and judge its trial."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from datetime import datetime
from pathlib import Path

from cuota.commands.common import changes, require_database, run, show
from cuota.commands.parsers import Add
from cuota.commands.place import called
from cuota.core import money
from cuota.core.instant import timestamp
from cuota.core.wire.script_json import for_scripts
from cuota.db.risk import approvals
from cuota.db.risk.approvals import ApprovalsState
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.risk.keep_policy import under_its_policy
from cuota.flows.risk.try_approvals import MATURES_AFTER, NotProved, TrialState, move_approvals, report_trial
from cuota.trial.page import calibration_html
from cuota.trial.rates import Rate
from cuota.trial.swing import Swing
from cuota.trial.trial import TrialReport


class _Refused(Exception):
    """The mode of a merchant was not changed."""

    def __init__(self, merchant: str, standing: ApprovalsState, why: NotProved) -> None:
        super().__init__(str(why))
        self.merchant, self.standing, self.why = merchant, standing, why


def merchant_approvals(options: argparse.Namespace) -> int:
    """`cuota merchant approvals`: change the mode. `on` is refused with the reasons until a trial has proved that the data helps."""

    async def flow(context: Context) -> tuple[str, ApprovalsState, str]:
        if options.mode == "on":
            context = await under_its_policy(context)
        merchant = await find_merchant(context, options.merchant)
        try:
            standing = await move_approvals(context, merchant.merchant_id, options.mode)
        except NotProved as refused:
            raise _Refused(
                merchant.name, await approvals.read(context.pool, merchant.merchant_id), refused
            ) from None
        return merchant.name, standing, context.policy.version

    note = changes("merchant.approvals", options.merchant, mode=options.mode)
    try:
        name, standing, policy = run(flow, note, merchant=options.merchant)
    except _Refused as refused:
        return _refused(options, refused.merchant, refused.standing, refused.why)
    facts = {"merchant": name, "approvals": standing.mode, "model": standing.model}
    if standing.mode == "on":
        facts["policy"] = policy
    by = f", by model {standing.model} under policy {policy}" if standing.mode == "on" else ""
    show(options, facts, [f"Advanced Approvals of {name}: {standing.mode}{by}."])
    return 0


def _refused(options: argparse.Namespace, name: str, standing: ApprovalsState, refused: NotProved) -> int:
    """Print the reasons why the mode was not changed, and what to do. Return the exit code."""
    if options.json:
        print(json.dumps({"refused": True, "reasons": list(refused.reasons)}, indent=2))
        return 1
    hints = [
        f"Start a trial first: {called()} merchant approvals {shlex.quote(name)} trial."
        if standing.mode == "off"
        else "",
        f"An order counts in the trial {MATURES_AFTER.days} days after its decision.",
        f"See {called()} approvals report {shlex.quote(name)}.",
    ]
    lines = [f"cuota: Advanced Approvals of {name}: {standing.mode}. {refused}", *filter(None, hints)]
    print("\n".join(lines), file=sys.stderr)
    return 1


def approvals_report(options: argparse.Namespace) -> int:
    """`cuota approvals report`."""
    require_database()

    async def flow(context: Context) -> tuple[str, TrialState, datetime]:
        context = await under_its_policy(context)
        merchant = await find_merchant(context, options.merchant)
        return merchant.name, await report_trial(context, merchant.merchant_id), context.now()

    name, tried, now = run(flow)
    lines = _lines(name, tried, now)
    if options.html is not None:
        page = calibration_html(
            tried.trial.report,
            f"Advanced Approvals of {name}",
            tried.trial.model,
            standing=f"Mode: {tried.standing.mode}. As of {timestamp(now)}, under policy {tried.policy}.",
        )
        try:
            options.html.write_text(page, encoding="utf-8")
        except OSError as problem:
            print(f"cuota: Cannot write {options.html}: {problem.strerror}.", file=sys.stderr)
            return 1
        lines += ["", f"The page was written to {options.html}."]
    model = tried.trial.model
    facts = {
        "merchant": name,
        "approvals": tried.standing.mode,
        "at": timestamp(now),
        "policy": tried.policy,
        "model": None if model is None else for_scripts(model.as_document()),
        "report": for_scripts(tried.trial.report.as_document()),
        "ready": tried.verdict.ready,
        "reasons": list(tried.verdict.reasons),
    }
    show(options, facts, lines)
    return 0


def _lines(name: str, tried: TrialState, now: datetime) -> list[str]:
    report, model = tried.trial.report, tried.trial.model
    lines = [
        f"Advanced Approvals of {name}: {tried.standing.mode}. As of {timestamp(now)}, under policy {tried.policy}.",
        f"{report.decided} orders decided in the trial, {report.approved} approved. The outcome of {report.matured} orders is known.",
        f"Orders lost: {report.losses}, with {money.shown(report.lost_amount)} of {money.shown(report.approved_amount)}.",
        "",
        f"Orders with data: {percent(report.covered)}",
        *(f"  {each.field:30} {each.orders:>7}  {percent(each.share)}" for each in report.coverage),
        "",
        *_compared(report),
        "",
        "Predicted and observed losses of orders whose outcome is known:",
        *(
            f"  {each.orders:>6} orders  predicted {each.predicted:6.1%}  observed {percent(each.observed)}"
            for each in report.calibration
        ),
        "",
    ]
    if model is None:
        lines.append("There is no model: too few orders were lost to compute one.")
    else:
        lines.append(
            f"Model {model.version}, at most {model.bound} points in either direction, shift {model.shift:+d}:"
        )
        lines += [f"  {each.field:30} {each.milli_points / 1000:6.1f} points" for each in model.weights]
    ready = (
        "Advanced Approvals may be turned on."
        if tried.verdict.ready
        else "Advanced Approvals may not be turned on:"
    )
    return [*lines, "", ready, *(f"  {reason}" for reason in tried.verdict.reasons)]


def _compared(report: TrialReport) -> list[str]:
    same, equal = report.same_threshold, report.equal_loss
    return [
        f"{'':34}{'approved':>26}  {'lost':>26}",
        f"{'without the data':34}{percent(report.approval_without):>26}  {percent(report.loss_without):>26}",
        f"{'with the data, same threshold':34}{percent(same.approval):>26}  {percent(same.loss):>26}",
        f"{'with the data, equal loss':34}{percent(equal.approval):>26}  {percent(equal.loss):>26}",
        f"{'  change':34}{percent(equal.approval_change, sign=True):>26}  {percent(equal.loss_change, sign=True):>26}",
        f"Change in orders approved, same threshold: {_orders(same)}; equal loss: {_orders(equal)}.",
        f"The {report.caught_cut:.0%} of approved orders with the lowest scores contain {report.caught_without:.0%} of the losses",
        f"without the data and {report.caught_with:.0%} with the data, a difference of {percent(report.caught_change, sign=True)}.",
    ]


def _orders(swing: Swing) -> str:
    return f"{swing.more:+,} ({swing.swapped_in:,} in, {swing.swapped_out:,} out)"


def percent(rate: Rate, *, sign: bool = False) -> str:
    """Format a rate with its 95 % confidence interval, such as `12.3 % (11.0 to 13.6)`."""
    form = "+.1f" if sign else ".1f"
    value, low, high = (format(100 * each, form) for each in (rate.value, rate.low, rate.high))
    return f"{value} % ({low} to {high})"


def register_merchant(add: Add) -> None:
    """`cuota merchant approvals`."""
    parser = add(
        "approvals",
        merchant_approvals,
        "set Advanced Approvals to off, trial or on; on requires a successful trial",
    )
    parser.add_argument("merchant", metavar="NAME_OR_ID")
    parser.add_argument("mode", choices=["trial", "on", "off"])


def register(add: Add) -> None:
    """`cuota approvals ...`."""
    parser = add(
        "report",
        approvals_report,
        "show a merchant's trial so far, and whether Advanced Approvals may be turned on",
    )
    parser.add_argument("merchant", metavar="NAME_OR_ID")
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="also write the report to this file as a web page with a calibration plot",
    )
