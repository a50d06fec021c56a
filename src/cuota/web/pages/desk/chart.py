"""Draws a small bar chart as SVG, on the server. Each page shows its numbers in a table behind the picture."""

from __future__ import annotations

from collections.abc import Sequence

from cuota.web.pages.render import PageContext

WIDTH, HEIGHT = 700, 120
_GAP = 6


def bars(values: Sequence[int]) -> list[PageContext]:
    """Return the rectangles of a chart, in the coordinates of its picture. The highest value fills the height.

    A value above 0 is at least 2 high, so that it can be seen.
    """
    if not values:
        return []
    step, highest = WIDTH / len(values), max(values)
    found: list[PageContext] = []
    for number, value in enumerate(values):
        height = max(2, round(HEIGHT * value / highest)) if value > 0 else 0
        found.append(
            {
                "x": round(number * step + _GAP / 2, 1),
                "y": HEIGHT - height,
                "width": round(step - _GAP, 1),
                "height": height,
            }
        )
    return found
