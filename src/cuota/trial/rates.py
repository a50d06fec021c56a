"""Shares with what they could be as well: a share of a few orders is not known to the last digit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Of the standard normal distribution, for 95 of 100.
Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Rate:
    """A number and the interval that holds the true one 95 times of 100."""

    value: float
    low: float
    high: float


def wilson(hits: float, of: float) -> Rate:
    """The share `hits` of `of`, with Wilson's interval, which is right for few hits too. Of nothing: anything."""
    if of <= 0:
        return Rate(0.0, 0.0, 1.0)
    share = hits / of
    middle = share + Z * Z / (2 * of)
    spread = Z * math.sqrt(share * (1 - share) / of + Z * Z / (4 * of * of))
    scale = 1 + Z * Z / of
    # At the ends rounding would leave a hair outside.
    return Rate(
        share,
        max(0.0, min(share, (middle - spread) / scale)),
        min(1.0, max(share, (middle + spread) / scale)),
    )


def interval(value: float, resampled: Sequence[float]) -> Rate:
    """`value` with the middle 95 of 100 of what resampling gave."""
    return Rate(value, _quantile(resampled, 0.025), _quantile(resampled, 0.975))


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
