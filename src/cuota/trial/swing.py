"""Who would be approved with the data, at every shift of its points, and what is lost by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from cuota.trial.rates import Rate

_EXACT = 1e-9


@dataclass(frozen=True, slots=True)
class Swing:
    """What the data would have changed. `more` orders approved (or fewer); some were declined before, others only then.

    Shares are of 1; a change is in shares too.
    """

    more: int
    swapped_in: int
    swapped_out: int
    approval: Rate
    loss: Rate
    approval_change: Rate
    loss_change: Rate

    def with_approval_change(self, change: Rate) -> Swing:
        """The same with another interval of its approved share's change."""
        return replace(self, approval_change=change)


class Cell(NamedTuple):
    """Orders that nothing here tells apart.

    `before`: approved by the score. `with_data` and `alone`: from which shift on they are approved with the data's
    points, or were the threshold moved instead; None is never. `lost` is None where there is no outcome.
    """

    margin: int
    points: int
    before: bool
    with_data: int | None
    alone: int | None
    lost: bool | None


class Approved(NamedTuple):
    """At each shift from -bound to bound: how many orders are approved, and how many of them are lost."""

    orders: list[float]
    lost: list[float]


class SwingSample:
    """One sample: cells, how often each is there, and the risk of each (its outcome, where there is one)."""

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
        """The shift at which, with the data, as large a share is lost as was; and the same for a moved threshold."""
        return self._equal(self._with), self._equal(self._alone)

    def gain(self, shift: int, alone: int) -> float:
        """How much larger the approved share is with the data than by moving the threshold alone."""
        more = self._with.orders[shift + self._bound] - self._alone.orders[alone + self._bound]
        return more / self.size if self.size else 0.0

    def orders(self, shift: int) -> float:
        """How many are approved with the data."""
        return self._with.orders[shift + self._bound]

    def loss(self, shift: int) -> float:
        """The share of those that is lost."""
        return _share(self._with.lost[shift + self._bound], self.orders(shift))

    def changes(self, shift: int) -> tuple[float, float, float]:
        """Change of the approved share, of the lost share, and the lost share with the data."""
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
        """From where as many are approved as were: on while too little is lost, or back while too much is.

        Walked from there, and not the best of all shifts: the best of many noisy numbers looks better than it is.
        """
        rate = _share(self.lost, self.approved)
        excess = [lost - rate * orders for orders, lost in zip(found.orders, found.lost, strict=True)]
        allowed = _EXACT * (1 + self.size)
        # Of shifts that come to the same, the one nearest to none.
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
