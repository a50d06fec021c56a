"""Counts the steps that a call takes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(call: Callable[[], object], refusal: type[Exception]) -> int:
    """Return how many lines of Python a call runs until it returns or raises `refusal`. The machine's speed does not
    change this number."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        del frame, event, argument
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except refusal:
        pass
    finally:
        sys.settrace(before)
    return count
