"""Computes how many orders would be approved with the data, and lost, at every shift of the data's points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from cuota.trial.rates import Rate

_EXACT = 1e-9


@dataclass(frozen=True, slots=True)
class Swing:
    """The changes that the data would have made. `more` is the change in approved orders: `swapped_in` minus `swapped_out`.

    Shares and changes of shares are numbers from 0 to 1.
    """

    more: int
    swapped_in: int
    swapped_out: int
    approval: Rate
    loss: Rate
    approval_change: Rate
    loss_change: Rate

    def with_approval_change(self, change: Rate) -> Swing:
        """Return the same numbers with another interval for the change of the approved share."""
        return replace(self, approval_change=change)


class Cell(NamedTuple):
    """Orders that are equal for this computation.

    `before` means that the score approves them. `with_data` and `alone` are the lowest shift at which they are approved, with the
    data's points or by moving only the threshold; None means never. `lost` is None if there is no outcome.
    """

    margin: int
    points: int
    before: bool
    with_data: int | None
    alone: int | None
    lost: bool | None


class Approved(NamedTuple):
    """The number of approved orders, and of lost ones among them, at each shift from -bound to bound."""

    orders: list[float]
    lost: list[float]


class SwingSample:
    """One sample: cells, the weight of each cell, and its risk (or its outcome, if there is one)."""

    def __init__(
        self, cells: Sequence[Cell], weights: Sequence[float], risks: Sequence[float], bound: int
    ) -> None:
        self._bound = bound
        self.size = sum(weights)
        told = [each for each in zip(cells, weights, risks, strict=True) if each[1]]
        self.approved = sum(weight for cell, weight, _ in told if cell.before)
        self.lost = sum(weight * risk for cell, weight, risk in told if cell.before)
        self._with = self._curve((cell.with_data, weight, risk) for cell, weight, risk in told)
        self._alone = self._curve((cell.alone, weight, risk) for cell, weight, risk in told)

    def at_equal_loss(self) -> tuple[int, int]:
        """Return the shift at which the lost share stays the same: with the data, and by moving only the threshold."""
        return self._equal(self._with), self._equal(self._alone)

    def gain(self, shift: int, alone: int) -> float:
        """Return how much larger the approved share is with the data than by moving only the threshold."""
        more = self._with.orders[shift + self._bound] - self._alone.orders[alone + self._bound]
        return more / self.size if self.size else 0.0

    def orders(self, shift: int) -> float:
        """Return how many orders are approved with the data."""
        return self._with.orders[shift + self._bound]

    def loss(self, shift: int) -> float:
        """Return the share of the orders approved with the data that is lost."""
        return _share(self._with.lost[shift + self._bound], self.orders(shift))

    def changes(self, shift: int) -> tuple[float, float, float]:
        """Return the change of the approved share, the change of the lost share, and the lost share with the data."""
        approval = _share(self.orders(shift) - self.approved, self.size)
        loss = self.loss(shift)
        return approval, loss - _share(self.lost, self.approved), loss

    def _curve(self, told: Iterable[tuple[int | None, float, float]]) -> Approved:
        orders = [0.0] * (2 * self._bound + 1)
        lost = orders.copy()
        for since, weight, risk in told:
            if since is not None:
                orders[since + self._bound] += weight
                lost[since + self._bound] += weight * risk
        return Approved(list(accumulate(orders)), list(accumulate(lost)))

    def _equal(self, found: Approved) -> int:
        """Return the shift with equal loss.

        The search starts where as many orders are approved as before. It moves up while too little is lost, or down while too much
        is lost. It does not take the best of all shifts, because the best of many noisy numbers looks better than it is.
        """
        rate = _share(self.lost, self.approved)
        excess = [lost - rate * orders for orders, lost in zip(found.orders, found.lost, strict=True)]
        allowed = _EXACT * (1 + self.size)
        # Of shifts with the same result, take the one nearest to zero.
        place = min(
            range(len(excess)), key=lambda at: (abs(found.orders[at] - self.approved), abs(at - self._bound))
        )
        if excess[place] > allowed:
            while place > 0 and excess[place] > allowed:
                place -= 1
        else:
            for further in range(place + 1, len(excess)):
                if excess[further] > allowed:
                    break
                if found.orders[further] > found.orders[place]:
                    place = further
        return place - self._bound


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
