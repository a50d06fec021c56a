"""Phone numbers that no two consumers of a test process share."""

from __future__ import annotations

from itertools import count

_COUNT = count(1)
_HOW_MANY = 4_000_000


def phone_number() -> str:
    """Return a US number that this process has not used before. Tests that need a certain number take one in 212 555."""
    # The step has no factor in common with _HOW_MANY, so all numbers come before the first one comes again. Neighbors
    # differ in all their digits.
    return f"212{6_000_000 + next(_COUNT) * 1_234_567 % _HOW_MANY}"
