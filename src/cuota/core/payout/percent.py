"""Percentages as people type and read them. The code stores a percentage as a whole number of basis points."""

from __future__ import annotations

import re

_PERCENT = re.compile(r"(100|[0-9]{1,2})(?:\.([0-9]{1,2}))?%?", re.ASCII)


def read_percent(text: str) -> int | None:
    """Return a percentage such as 5.9 or 5.90% in basis points. None if the text is not a percentage from 0 to 100."""
    found = _PERCENT.fullmatch(text)
    points = int(found[1]) * 100 + int((found[2] or "").ljust(2, "0")) if found else 10_001
    return points if points <= 10_000 else None


def percent_text(points: int) -> str:
    """Write basis points as a percentage with two decimals."""
    return f"{points // 100}.{points % 100:02d}"
