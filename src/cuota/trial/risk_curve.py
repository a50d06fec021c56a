"""A logistic curve, fitted to known outcomes: the risk of a loss depending on the score and a model's points."""

from __future__ import annotations

import math
from collections.abc import Sequence

# Scores are divided by this number, because single points are too small a unit for stable computation.
UNIT = 100.0
# A small penalty keeps the curve flat where there is no data. It is too small to matter where there is data.
_RIDGE = 1e-2
_STEPS = 25
_NEAR = 1e-6
_LARGEST = 30.0

CurvePoint = tuple[float, float]
Curve = tuple[float, float, float]


def fitted(
    places: Sequence[CurvePoint],
    seen: Sequence[float],
    lost: Sequence[float],
    start: Curve | None = None,
    steps: int = _STEPS,
) -> Curve:
    """Fit the curve by Newton's method. At each place (margin and points, in units), `lost` of `seen` orders were lost.

    Starting from a similar curve `start` needs few steps.
    """
    if start is None:
        share = (sum(lost) + 0.5) / (sum(seen) + 1.0)
        start = (math.log(share / (1 - share)), 0.0, 0.0)
    curve = start
    for _ in range(steps):
        change = _newton(places, seen, lost, curve)
        curve = (curve[0] + change[0], curve[1] + change[1], curve[2] + change[2])
        if max(map(abs, change)) < _NEAR:
            break
    return curve


def risk(curve: Curve, place: CurvePoint) -> float:
    """Return the probability of a loss at a place."""
    odds = curve[0] + curve[1] * place[0] + curve[2] * place[1]
    return 1.0 / (1.0 + math.exp(-max(-_LARGEST, min(_LARGEST, odds))))


def _newton(
    places: Sequence[CurvePoint], seen: Sequence[float], lost: Sequence[float], curve: Curve
) -> Curve:
    one = margin = point = 0.0
    w00 = w01 = w02 = w11 = w12 = w22 = 0.0
    for (x, y), count, bad in zip(places, seen, lost, strict=True):
        if not count:
            continue
        # The same formula as `risk`, which is too slow to call a million times.
        odds = curve[0] + curve[1] * x + curve[2] * y
        expected = 1.0 / (
            1.0 + math.exp(-odds if -_LARGEST < odds < _LARGEST else _LARGEST if odds < 0 else -_LARGEST)
        )
        error = bad - count * expected
        weight = count * expected * (1 - expected)
        one += error
        margin += error * x
        point += error * y
        w00 += weight
        w01 += weight * x
        w02 += weight * y
        w11 += weight * x * x
        w12 += weight * x * y
        w22 += weight * y * y
    right = (one, margin - _RIDGE * curve[1], point - _RIDGE * curve[2])
    change = _solved((w00 + 1e-9, w01, w02), (w11 + _RIDGE, w12), w22 + _RIDGE, right)
    # A step that is too long leads to a flat region, from which Newton's method does not return.
    longest = max(1.0, *map(abs, change))
    return change[0] / longest, change[1] / longest, change[2] / longest


def _solved(first: Curve, second: tuple[float, float], third: float, right: Curve) -> Curve:
    """Solve three symmetric equations by Cholesky's method."""
    a = math.sqrt(first[0])
    b, c = first[1] / a, first[2] / a
    d = math.sqrt(max(1e-12, second[0] - b * b))
    e = (second[1] - b * c) / d
    f = math.sqrt(max(1e-12, third - c * c - e * e))
    x = right[0] / a
    y = (right[1] - b * x) / d
    z = (right[2] - c * x - e * y) / f
    z /= f
    y = (y - e * z) / d
    return (x - b * y - c * z) / a, y, z
