"""Shares with their confidence intervals, because a share of a few orders is not exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# The quantile of the standard normal distribution for a 95 % interval.
Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Rate:
    """A number and its 95 % confidence interval."""

    value: float
    low: float
    high: float


def wilson(hits: float, of: float) -> Rate:
    """Return the share `hits` / `of` with Wilson's interval, which also works for few hits. If `of` is 0, the interval is 0 to 1."""
    if of <= 0:
        return Rate(0.0, 0.0, 1.0)
    share = hits / of
    middle = share + Z * Z / (2 * of)
    spread = Z * math.sqrt(share * (1 - share) / of + Z * Z / (4 * of * of))
    scale = 1 + Z * Z / of
    # At 0 and 1, rounding could leave the value just outside the interval.
    return Rate(
        share,
        max(0.0, min(share, (middle - spread) / scale)),
        min(1.0, max(share, (middle + spread) / scale)),
    )


def interval(value: float, resampled: Sequence[float]) -> Rate:
    """Return `value` with the interval that contains the middle 95 % of the resampled values."""
    return Rate(value, _quantile(resampled, 0.025), _quantile(resampled, 0.975))


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
