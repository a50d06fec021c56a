"""`cuota merchant approvals` and `cuota approvals report`: Advanced Approvals, tried, judged and moved."""

from __future__ import annotations

import argparse
from pathlib import Path

from cuota.calibration_page import calibration_html
from cuota.commands.common import Add, require_database, run, show
from cuota.core import money
from cuota.core.rates import Rate
from cuota.core.trial import Report
from cuota.db.approvals import Standing
from cuota.flows.context import Context
from cuota.flows.manage_merchants import find_merchant
from cuota.flows.try_approvals import Tried, move_approvals, report_trial


def merchant_approvals(options: argparse.Namespace) -> int:
    """`cuota merchant approvals`: `on` is refused, saying why, until the trial says that it helps."""

    async def flow(context: Context) -> tuple[str, Standing]:
        merchant = await find_merchant(context, options.merchant)
        return merchant.name, await move_approvals(context, merchant.merchant_id, options.mode)

    name, standing = run(flow)
    facts = {"merchant": name, "approvals": standing.mode, "model": standing.model}
    by = f", by model {standing.model}" if standing.mode == "on" else ""
    show(options, facts, [f"Advanced Approvals of {name}: {standing.mode}{by}."])
    return 0


def approvals_report(options: argparse.Namespace) -> int:
    """`cuota approvals report`."""
    require_database()

    async def flow(context: Context) -> tuple[str, Tried]:
        merchant = await find_merchant(context, options.merchant)
        return merchant.name, await report_trial(context, merchant.merchant_id)

    name, tried = run(flow)
    if options.html is not None:
        title = f"Advanced Approvals of {name}"
        options.html.write_text(calibration_html(tried.trial.report, title, tried.trial.model))
    model = tried.trial.model
    facts = {
        "merchant": name,
        "approvals": tried.standing.mode,
        "model": None if model is None else model.as_document(),
        "report": tried.trial.report.as_document(),
        "ready": tried.verdict.ready,
        "reasons": list(tried.verdict.reasons),
    }
    show(options, facts, _lines(name, tried))
    return 0


def _lines(name: str, tried: Tried) -> list[str]:
    report, model = tried.trial.report, tried.trial.model
    lines = [
        f"Advanced Approvals of {name}: {tried.standing.mode}.",
        f"{report.decided} orders decided in the trial, {report.approved} approved; of {report.matured} the outcome is known.",
        f"Lost: {report.losses}; {money.shown(report.lost_amount)} of {money.shown(report.approved_amount)}.",
        "",
        f"Came with data: {percent(report.covered)}",
        *(f"  {each.field:30} {each.orders:>7}  {percent(each.share)}" for each in report.coverage),
        "",
        *_compared(report),
        "",
        "Of matured orders, predicted and observed losses:",
        *(
            f"  {each.orders:>6} orders  predicted {each.predicted:6.1%}  observed {percent(each.observed)}"
            for each in report.calibration
        ),
        "",
    ]
    if model is None:
        lines.append("There is no model: too few losses to learn from.")
    else:
        lines.append(
            f"Model {model.version}, at most {model.bound} points either way, shift {model.shift:+d}:"
        )
        lines += [f"  {each.field:30} {each.milli_points / 1000:6.1f} points" for each in model.weights]
    ready = "It may be turned on." if tried.verdict.ready else "It may not be turned on:"
    return [*lines, "", ready, *(f"  {reason}" for reason in tried.verdict.reasons)]


def _compared(report: Report) -> list[str]:
    same, equal = report.same_threshold, report.equal_loss
    return [
        f"{'':34}{'approved':>26}  {'lost':>26}",
        f"{'without the data':34}{percent(report.approval_without):>26}  {percent(report.loss_without):>26}",
        f"{'with it, at the same threshold':34}{percent(same.approval):>26}  {percent(same.loss):>26}",
        f"{'with it, at equal loss':34}{percent(equal.approval):>26}  {percent(equal.loss):>26}",
        f"{'  change':34}{percent(equal.approval_change, sign=True):>26}  {percent(equal.loss_change, sign=True):>26}",
    ]


def percent(rate: Rate, *, sign: bool = False) -> str:
    """`12.3 % (11.0 to 13.6)`: the value and its 95 % interval."""
    form = "+.1f" if sign else ".1f"
    value, low, high = (format(100 * each, form) for each in (rate.value, rate.low, rate.high))
    return f"{value} % ({low} to {high})"


def register_merchant(add: Add) -> None:
    """`cuota merchant approvals`."""
    parser = add(
        "approvals", merchant_approvals, "Advanced Approvals: off, trial or on (once a trial has proved it)"
    )
    parser.add_argument("merchant", metavar="NAME_OR_ID")
    parser.add_argument("mode", choices=["trial", "on", "off"])


def register(add: Add) -> None:
    """`cuota approvals ...`."""
    parser = add(
        "report", approvals_report, "what a merchant's trial shows so far, and whether it may be turned on"
    )
    parser.add_argument("merchant", metavar="NAME_OR_ID")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="the same as a page, with calibration as a plot"
    )
