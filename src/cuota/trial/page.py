"""Writes a trial's report as one HTML page without scripts or external files, so that it can be sent by e-mail."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from cuota.core import money
from cuota.core.risk.model import Model
from cuota.trial.rates import Rate
from cuota.trial.swing import Swing
from cuota.trial.trial import Bin, TrialReport, Verdict, verdict

# The size of the plot in its own units: a square, with margins for the numbers.
_SIDE, _LEFT, _TOP, _ROOM = 320, 68, 12, 44
_TICKS = 4
_ENDS = (1, 1.2, 1.6, 2, 2.4, 2.8, 3.2, 4, 4.8, 6, 7.2, 8, 10)

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #14201e; --grey: #566462; --line: #dfe6e4; --accent: #0b6e63;
  --panel: #f4f7f6; --green: #1a7f37; --red: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ground: #131918; --ink: #eaf0ee; --grey: #9daba8; --line: #2b3634;
  --accent: #5cc8b8; --panel: #1b2322; --green: #5fd08a; --red: #ffa198; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto,
  "Helvetica Neue", Arial, sans-serif; font-variant-numeric: tabular-nums; }
main { max-width: 728px; margin: 0 auto; padding: 32px 16px 64px; }
h1 { font-size: 24px; line-height: 32px; margin: 0 0 8px; }
h2 { font-size: 18px; line-height: 24px; margin: 40px 0 8px; }
p, ul { margin: 0 0 16px; }
ul { padding-left: 20px; }
.quiet, figcaption { color: var(--grey); }
.verdict { background: var(--panel); border-radius: 12px; padding: 16px; margin: 16px 0; }
.verdict strong.ready { color: var(--green); }
.verdict strong.not { color: var(--red); }
.verdict > :last-child { margin-bottom: 0; }
code { overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin-bottom: 16px; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 8px; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th { font-weight: 600; }
td small { display: block; color: var(--grey); white-space: nowrap; }
figure { margin: 0 0 16px; }
svg { display: block; width: 100%; max-width: 480px; height: auto; }
svg text { fill: var(--grey); font-size: 12px; }
.grid { stroke: var(--line); } .even { stroke: var(--grey); stroke-dasharray: 4 4; }
@media (max-width: 480px) { table { font-size: 14px; } th, td { padding: 8px 4px; } td small { white-space: normal; }
  code { font-size: 13px; } }
.whisker { stroke: var(--accent); stroke-width: 2; } .dot { fill: var(--accent); }
"""


def calibration_html(
    report: TrialReport, title: str = "Advanced Approvals", model: Model | None = None, *, standing: str = ""
) -> str:
    """Return the page: the verdict, what would have changed, calibration as a plot and numbers, coverage, and the model.

    `standing` is a sentence with the mode and the date.
    """
    judged = verdict(report)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{_summary(report, standing)}\n{_verdict(judged)}\n"
        f"<h2>What the data would have changed</h2>\n{_changes(report)}\n"
        f"<h2>Predicted and observed losses</h2>\n{_calibration(report.calibration)}\n"
        f"<h2>What was sent</h2>\n{_coverage(report)}\n{_model(model)}</main>\n</body>\n</html>\n"
    )


def _summary(report: TrialReport, standing: str) -> str:
    said = f"{escape(standing)} " if standing else ""
    return (
        f'<p class="quiet">{said}{report.decided:,} orders decided, {report.approved:,} approved, '
        f"{report.matured:,} of them with a known outcome, {report.losses:,} of these lost: {money.shown(report.lost_amount)} of "
        f"{money.shown(report.approved_amount)}. All intervals are 95% confidence intervals.</p>"
    )


def _verdict(judged: Verdict) -> str:
    word, kind = (
        ("Advanced Approvals may be turned on.", "ready")
        if judged.ready
        else ("Advanced Approvals may not be turned on.", "not")
    )
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in judged.reasons)
    return f'<div class="verdict"><p><strong class="{kind}">{word}</strong></p><ul>{reasons}</ul></div>'


def _changes(report: TrialReport) -> str:
    swings = (report.same_threshold, report.equal_loss)
    rows = [
        ("Approved", _share(report.approval_without), *(_share(swing.approval) for swing in swings)),
        ("change", "", *(_change(swing.approval_change) for swing in swings)),
        ("Lost, of approved", _share(report.loss_without), *(_share(swing.loss) for swing in swings)),
        ("change", "", *(_change(swing.loss_change) for swing in swings)),
        ("Orders", "", *(_orders(swing) for swing in swings)),
    ]
    head = (
        "Orders with a known outcome",
        "Without the data",
        "With the data, same threshold",
        "With the data, equal loss",
    )
    return (
        f"{_table(head, rows)}\n<p>The {report.caught_cut:.0%} of approved orders with the lowest scores contain {report.caught_without:.0%} of the "
        f"losses without the data and {report.caught_with:.0%} with the data, a difference of "
        f"{_words(report.caught_change)}. All of these orders have a known outcome; nothing is estimated.</p>\n"
        f'<p class="quiet">For equal loss, {report.shift:+d} is added to the points of all data. Declined orders have no '
        "outcome: their risk is estimated from a curve through the other orders, and assumed to be somewhat worse.</p>"
    )


def _calibration(bins: Sequence[Bin]) -> str:
    if not bins:
        return "<p>The outcome of no approved order is known yet.</p>"
    rows = [
        (_percent(each.predicted), _share(each.observed), f"{each.losses:,} of {each.orders:,}")
        for each in bins
    ]
    return f"{_plot(bins)}\n{_table(('Predicted', 'Observed', 'Lost'), rows)}"


def _plot(bins: Sequence[Bin]) -> str:
    top = _nice(max(max(each.predicted, each.observed.high) for each in bins))
    width, height = _LEFT + _SIDE + 28, _TOP + _SIDE + _ROOM

    def x(share: float) -> str:
        return f"{_LEFT + _SIDE * share / top:.1f}"

    def y(share: float) -> str:
        return f"{_TOP + _SIDE * (1 - share / top):.1f}"

    marks = []
    for share in (top * tick / _TICKS for tick in range(_TICKS + 1)):
        marks.append(_line("grid", x(0), y(share), x(top), y(share)))
        marks.append(
            f'<text x="{_LEFT - 8}" y="{y(share)}" dy="4" text-anchor="end">{100 * share:.4g}%</text>'
        )
        marks.append(
            f'<text x="{x(share)}" y="{_TOP + _SIDE + 18}" text-anchor="middle">{100 * share:.4g}%</text>'
        )
    marks.append(_line("even", x(0), y(0), x(top), y(top)))
    for each in bins:
        at, seen = x(each.predicted), each.observed
        marks.append(_line("whisker", at, y(seen.low), at, y(seen.high)))
        marks.append(f'<circle class="dot" cx="{at}" cy="{y(seen.value)}" r="4"/>')
    caption = "Each dot is a group of orders; its line is the 95% confidence interval. On the dashed line, prediction and outcome agree."
    return (
        f'<figure><svg viewBox="0 0 {width} {height}" role="img" aria-label="Observed against predicted losses">'
        f'{"".join(marks)}<text x="{_LEFT + _SIDE / 2}" y="{height - 6}" text-anchor="middle">predicted loss</text>'
        f'<text transform="translate(14 {_TOP + _SIDE / 2}) rotate(-90)" text-anchor="middle">observed loss</text>'
        f"</svg><figcaption>{caption}</figcaption></figure>"
    )


def _line(kind: str, x1: str, y1: str, x2: str, y2: str) -> str:
    return f'<line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def _nice(share: float) -> float:
    """Return the end of an axis: the next larger number whose quarters are easy to read."""
    size = 10.0 ** math.floor(math.log10(max(share, 0.001)))
    return next(step * size for step in _ENDS if step * size >= share - 1e-12)


def _coverage(report: TrialReport) -> str:
    rows = [
        (f"<code>{each.field}</code>", f"{each.orders:,}", _share(each.share)) for each in report.coverage
    ]
    table = _table(("Field", "Orders", "Share"), rows)
    return (
        f"<p>{_words(report.covered)} of all decided orders came with data that could be read.</p>\n{table}"
    )


def _model(model: Model | None) -> str:
    if model is None:
        return ""
    rows = [(f"<code>{each.field}</code>", f"{each.milli_points / 1_000:.1f}") for each in model.weights]
    return (
        f"<h2>The model</h2>\n<p><code>{escape(model.version)}</code>, at most {model.bound} points in either direction.</p>\n"
        f"{_table(('Field', 'Points from worst to best'), rows)}\n"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table. The cells already contain HTML."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    return (
        f'<div class="wide"><table>\n<thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>'
    )


def _orders(swing: Swing) -> str:
    return f"{swing.more:+,}<small>{swing.swapped_in:,} in, {swing.swapped_out:,} out</small>"


def _share(rate: Rate) -> str:
    return f"{_percent(rate.value)}<small>{_percent(rate.low)} to {_percent(rate.high)}</small>"


def _change(rate: Rate) -> str:
    return f"{100 * rate.value:+.2f}<small>{100 * rate.low:+.2f} to {100 * rate.high:+.2f} points</small>"


def _words(rate: Rate) -> str:
    return f"{_percent(rate.value)} ({_percent(rate.low)} to {_percent(rate.high)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"
