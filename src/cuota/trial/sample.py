"""The sample of orders that a trial compares, and random resamples of whole consumers, drawn with a fixed seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from cuota.core.risk.facts import FieldValue
from cuota.trial.rates import Rate, interval, wilson
from cuota.trial.risk_curve import UNIT, Curve, CurvePoint, fitted, risk
from cuota.trial.swing import Cell, Swing, SwingSample

RESAMPLES = 400
# The share of the approved orders that is examined as if it had been declined.
CUT = 0.20
# A declined order has no outcome. Its odds of a loss are assumed to be this much worse than the curve says.
CAUTION = 1.25
# Orders whose scores and points differ by less than this share one point on the curve.
_GRAIN = 4
_REFITTING = 2

Weights = list[float]
# For each rank: all of its cells, and its cells that were lost.
Ranked = list[tuple[list[int], list[int]]]


@dataclass(frozen=True, slots=True)
class TrialOrder:
    """One order of the trial. Amounts are cents. `score` is without the data. `group` is the consumer, or the order itself.

    `refused` means that a rule declined the order at any score. `matured` means that the decision is old enough for the outcome
    to be known, if the order was approved. `points` come from a model that has not seen this order's group,
    before shift and bound; None if the model has no points for the order.
    """

    group: str
    score: int
    threshold: int
    refused: bool
    approved: bool
    amount: int
    fields: dict[str, FieldValue]
    matured: bool
    lost: bool
    lost_amount: int
    points: int | None = None


class Compared(NamedTuple):
    """The numbers of one sample. `trial.TrialReport` explains them."""

    approved: int
    same_threshold: Swing
    equal_loss: Swing
    shift: int
    caught_without: float
    caught_with: float
    caught_change: Rate


class Sample:
    """Matured orders, approved and declined, counted by cell."""

    def __init__(self, orders: Sequence[TrialOrder], *, bound: int) -> None:
        self.size, self._bound = len(orders), bound
        numbers: dict[Cell, int] = {}
        groups: dict[str, list[int]] = {}
        for order in orders:
            number = numbers.setdefault(_cell(order, bound), len(numbers))
            groups.setdefault(order.group, []).append(number)
        self._cells, self._groups = list(numbers), list(groups.values())
        grid = [(cell.margin // _GRAIN, cell.points // _GRAIN) for cell in self._cells]
        index = {place: number for number, place in enumerate(sorted(set(grid)))}
        self._place_of = [index[place] for place in grid]
        self._places: list[CurvePoint] = [
            ((x + 0.5) * _GRAIN / UNIT, (y + 0.5) * _GRAIN / UNIT) for x, y in index
        ]
        self._by_score = _ranked(self._cells, lambda cell: cell.margin)
        self._by_both = _ranked(self._cells, lambda cell: cell.margin + cell.points)
        self._whole = self._weights(self._groups)
        self._curve = self._fit(self._whole, None)
        self._predicted = dict(zip(self._cells, self._risks(self._curve, known=False), strict=True))

    def predicted(self, order: TrialOrder) -> float:
        """Return the risk that the curve gives for an order of the sample."""
        return self._predicted[_cell(order, self._bound)]

    def compared(self, *, seed: int, resamples: int) -> Compared:
        """Compare decisions with and without the data, on the sample and on resamples of it."""
        whole = self._seen(self._whole, self._curve)
        shift, alone = whole.at_equal_loss()
        chance = random.Random(seed)  # noqa: S311 - statistics, no secret
        same, equal, gains, caught = [], [], [], []
        for _ in range(resamples):
            weights = self._weights(chance.choices(self._groups, k=len(self._groups)) if self._groups else ())
            seen = self._seen(weights, self._fit(weights, self._curve))
            same.append(seen.changes(0))
            equal.append(seen.changes(shift))
            gains.append(seen.gain(*seen.at_equal_loss()))
            caught.append(_caught(self._by_both, weights) - _caught(self._by_score, weights))
        by_score, by_both = _caught(self._by_score, self._whole), _caught(self._by_both, self._whole)
        at_equal = self._swing(whole, shift, equal)
        return Compared(
            approved=round(whole.approved),
            same_threshold=self._swing(whole, 0, same),
            # The shift is computed again when Advanced Approvals is turned on, so the interval lets the shift vary too.
            equal_loss=at_equal.with_approval_change(interval(whole.gain(shift, alone), gains)),
            shift=shift,
            caught_without=by_score,
            caught_with=by_both,
            caught_change=interval(by_both - by_score, caught),
        )

    def _weights(self, groups: Iterable[list[int]]) -> Weights:
        weights = [0.0] * len(self._cells)
        for cells in groups:
            for cell in cells:
                weights[cell] += 1.0
        return weights

    def _fit(self, weights: Weights, near: Curve | None) -> Curve:
        """Fit the curve to approved orders whose outcome is known."""
        seen, lost = [0.0] * len(self._places), [0.0] * len(self._places)
        for cell, weight, place in zip(self._cells, weights, self._place_of, strict=True):
            if cell.lost is not None:
                seen[place] += weight
                lost[place] += weight * cell.lost
        return (
            fitted(self._places, seen, lost)
            if near is None
            else fitted(self._places, seen, lost, near, _REFITTING)
        )

    def _risks(self, curve: Curve, *, known: bool) -> list[float]:
        """Return the risk of each cell: the outcome if `known` is true and there is one, otherwise the curve's value."""
        at = [risk(curve, place) for place in self._places]
        careful = [CAUTION * each / (1 + (CAUTION - 1) * each) for each in at]
        return [
            float(cell.lost) if known and cell.lost is not None else (at if cell.before else careful)[place]
            for cell, place in zip(self._cells, self._place_of, strict=True)
        ]

    def _seen(self, weights: Weights, curve: Curve) -> SwingSample:
        return SwingSample(self._cells, weights, self._risks(curve, known=True), self._bound)

    def _swing(self, whole: SwingSample, shift: int, resampled: list[tuple[float, float, float]]) -> Swing:
        approval, loss_change, loss = whole.changes(shift)
        approvals, loss_changes, losses = zip(*resampled, strict=True)
        now = [cell.with_data is not None and cell.with_data <= shift for cell in self._cells]
        moved = list(zip(self._cells, self._whole, now, strict=True))
        return Swing(
            more=round(whole.orders(shift) - whole.approved),
            swapped_in=round(sum(weight for cell, weight, after in moved if after and not cell.before)),
            swapped_out=round(sum(weight for cell, weight, after in moved if cell.before and not after)),
            approval=wilson(whole.orders(shift), self.size),
            loss=interval(loss, losses),
            approval_change=interval(approval, approvals),
            loss_change=interval(loss_change, loss_changes),
        )


def _cell(order: TrialOrder, bound: int) -> Cell:
    margin, given = order.score - order.threshold, order.points or 0
    before = margin >= 0 and not order.refused
    if order.refused:
        with_data = alone = None
    elif order.points is None:
        with_data = alone = -bound if before else None
    else:
        with_data, alone = _since(margin, given, bound), _since(margin, 0, bound)
    known = order.lost if order.approved and order.matured else None
    return Cell(margin, given, before, with_data, alone, known)


def _since(margin: int, points: int, bound: int) -> int | None:
    """Return the lowest shift at which an order is approved. Points and shift together are limited to the bound."""
    if margin >= bound:
        return -bound
    since = -margin - points
    return None if margin < -bound or since > bound else max(-bound, since)


def _ranked(cells: Sequence[Cell], key: Callable[[Cell], int]) -> Ranked:
    """Return approved cells with a known outcome, the worst first. Cells with the same key are grouped."""
    known = [
        (key(cell), number, cell.lost)
        for number, cell in enumerate(cells)
        if cell.before and cell.lost is not None
    ]
    known.sort()
    tied = [list(same) for _, same in groupby(known, key=lambda each: each[0])]
    return [([at for _, at, _ in same], [at for _, at, lost in same if lost]) for same in tied]


def _caught(ranked: Ranked, weights: Weights) -> float:
    """Return the share of all losses in the worst CUT of the orders. Equal orders across the border count in proportion."""
    counts = [(sum([weights[at] for at in cells]), sum([weights[at] for at in bad])) for cells, bad in ranked]
    room = CUT * sum([orders for orders, _ in counts])
    lost = sum([bad for _, bad in counts])
    caught = 0.0
    for orders, bad in counts:
        caught += bad * min(1.0, room / orders) if orders else 0.0
        room -= orders
        if room <= 0:
            break
    return caught / lost if lost else 0.0
