"""The report of a trial of Advanced Approvals: which orders the data would have approved, and what that would have cost.

A declined order has no outcome. docs/risk.md explains how the report handles that, and what it assumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from cuota.core.risk.approvals import NAMES
from cuota.trial.rates import Rate, wilson
from cuota.trial.sample import CUT, RESAMPLES, Sample, TrialOrder
from cuota.trial.swing import Swing

__all__ = ["TrialOrder", "TrialReport", "Verdict", "report", "verdict"]

# The minimum numbers that the mode `on` requires.
ENOUGH_DECIDED = 1_000
ENOUGH_MATURED = 500
ENOUGH_LOSSES = 30
ENOUGH_COVERED = 0.20
MOST_BINS = 10
FEWEST_IN_A_BIN = 50


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the decided orders had a readable value in a field."""

    field: str
    orders: int
    share: Rate


@dataclass(frozen=True, slots=True)
class Bin:
    """Matured orders with about the same predicted risk."""

    orders: int
    losses: int
    predicted: float
    observed: Rate


@dataclass(frozen=True, slots=True)
class TrialReport:
    """All numbers of a trial. Shares are numbers from 0 to 1.

    `judged` counts the matured orders, approved and declined; all comparisons use them. `..._without` is what happened.
    `same_threshold` and `equal_loss` are what would have happened with the data. `shift` is the number of points that makes
    losses equal. `caught_...` is the share of the losses among approved orders that is in the worst fifth, by the score without
    and with the data.
    """

    decided: int
    approved: int
    matured: int
    losses: int
    approved_amount: int
    lost_amount: int
    covered: Rate
    coverage: tuple[Coverage, ...]
    judged: int
    bound: int
    approval_without: Rate
    loss_without: Rate
    same_threshold: Swing
    equal_loss: Swing
    shift: int
    caught_cut: float
    caught_without: float
    caught_with: float
    caught_change: Rate
    calibration: tuple[Bin, ...]
    resamples: int
    seed: int

    def as_document(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether Advanced Approvals may be turned on, and the reasons as sentences."""

    ready: bool
    reasons: tuple[str, ...]


def report(
    orders: Sequence[TrialOrder], *, bound: int, seed: int = 0, resamples: int = RESAMPLES
) -> TrialReport:
    """Compute the numbers of a trial. The same orders and seed give the same numbers."""
    approved = [order for order in orders if order.approved]
    matured = [order for order in approved if order.matured]
    covered = sum(bool(order.fields) for order in orders)
    sample = Sample([order for order in orders if order.matured], bound=bound)
    found = sample.compared(seed=seed, resamples=resamples)
    return TrialReport(
        decided=len(orders),
        approved=len(approved),
        matured=len(matured),
        losses=sum(order.lost for order in matured),
        approved_amount=sum(order.amount for order in matured),
        lost_amount=sum(order.lost_amount for order in matured),
        covered=wilson(covered, len(orders)),
        coverage=tuple(_coverage(field, orders) for field in NAMES),
        judged=sample.size,
        bound=bound,
        approval_without=wilson(found.approved, sample.size),
        loss_without=wilson(sum(order.lost for order in matured), len(matured)),
        same_threshold=found.same_threshold,
        equal_loss=found.equal_loss,
        shift=found.shift,
        caught_cut=CUT,
        caught_without=found.caught_without,
        caught_with=found.caught_with,
        caught_change=found.caught_change,
        calibration=_calibration([(sample.predicted(order), order.lost) for order in matured]),
        resamples=resamples,
        seed=seed,
    )


def verdict(report: TrialReport) -> Verdict:
    """Judge a trial. `on` requires enough orders, losses and data, and intervals that prove that the data helps."""
    gain, caught = report.equal_loss.approval_change, report.caught_change
    missing = [
        *_too_few("decided orders", report.decided, ENOUGH_DECIDED),
        *_too_few("approved orders whose outcome is known", report.matured, ENOUGH_MATURED),
        *_too_few("losses among them", report.losses, ENOUGH_LOSSES),
    ]
    # If there are too few orders, the intervals are not judged, because they would only repeat that.
    judged = not missing
    if report.decided and report.covered.value < ENOUGH_COVERED:
        missing.append(
            f"Only {report.covered.value:.0%} of the orders came with data; {ENOUGH_COVERED:.0%} are needed."
        )
    if judged and gain.low <= 0:
        missing.append(
            f"At equal loss the approval rate would change by {_points(gain)}: "
            "the interval does not prove that the data helps."
        )
    if judged and caught.low <= 0:
        missing.append(
            f"With the data, the worst fifth of approved orders would contain {caught.value:+.1%} more of the losses "
            f"(95% interval {caught.low:+.1%} to {caught.high:+.1%}): the outcomes do not prove that the data helps."
        )
    if missing:
        return Verdict(ready=False, reasons=tuple(missing))
    return Verdict(ready=True, reasons=(f"At equal loss the approval rate would change by {_points(gain)}.",))


def _too_few(what: str, there: int, needed: int) -> list[str]:
    return [] if there >= needed else [f"There are {there:,} {what}; {needed:,} are needed."]


def _points(change: Rate) -> str:
    return (
        f"{100 * change.value:+.2f} percentage points "
        f"(95% interval {100 * change.low:+.2f} to {100 * change.high:+.2f})"
    )


def _coverage(field: str, orders: Sequence[TrialOrder]) -> Coverage:
    found = sum(field in order.fields for order in orders)
    return Coverage(field, found, wilson(found, len(orders)))


def _calibration(judged: list[tuple[float, bool]]) -> tuple[Bin, ...]:
    """Return bins of equal size, from the lowest predicted risk to the highest."""
    judged.sort()
    bins = max(1, min(MOST_BINS, len(judged) // FEWEST_IN_A_BIN))
    edges = [len(judged) * index // bins for index in range(bins + 1)]
    found = [judged[low:high] for low, high in pairwise(edges) if high > low]
    return tuple(
        Bin(
            orders=len(part),
            losses=sum(lost for _, lost in part),
            predicted=sum(predicted for predicted, _ in part) / len(part),
            observed=wilson(sum(lost for _, lost in part), len(part)),
        )
        for part in found
    )
