"""The circuit breaker of one card rail. After several calls without an answer, calls are refused for a short time.

A refused call was never sent. After that time, one trial call is sent; its answer closes the breaker, or opens it
again. The state belongs to this process.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cuota.rails.unavailable import RailUnavailable

# This many calls in a row without an answer open the breaker. A decline is an answer.
FAILURES = 5
OPEN_SECONDS = 15.0
T = TypeVar("T")


class Breaker:
    """`now` is a clock in seconds that never goes backward."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._failures = 0
        self._open_until = 0.0

    def admits(self) -> bool:
        """Return whether a call may be sent now. When the pause is over, one trial call is admitted."""
        if self._failures < FAILURES:
            return True
        if self._now() < self._open_until:
            return False
        # This is the trial call. The next one waits for another pause, even if the result of this one is never
        # reported.
        self._open_until = self._now() + OPEN_SECONDS
        return True

    def answered(self) -> None:
        """Record that the rail answered a call."""
        self._failures = 0

    def failed(self) -> None:
        """Record that a call had no answer."""
        self._failures += 1
        if self._failures >= FAILURES:
            self._open_until = self._now() + OPEN_SECONDS


async def guarded(breaker: Breaker, call: Callable[[], Awaitable[T]], told: Callable[[str], None]) -> T:
    """Send a call and count its result: `answered`, `failed`, or `refused` if the breaker is open and nothing was sent.

    Raises RailUnavailable for `failed` and `refused`. Any other exception counts as an answer, in which the rail
    refuses the call's arguments.
    """
    if not breaker.admits():
        told("refused")
        raise RailUnavailable("the rail did not answer several calls in a row; none is sent for a short time")
    try:
        answer = await call()
    except RailUnavailable:
        breaker.failed()
        told("failed")
        raise
    except Exception:
        breaker.answered()
        told("answered")
        raise
    breaker.answered()
    told("answered")
    return answer
