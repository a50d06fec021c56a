"""A circuit breaker: a rail that fails again and again is not called for a while, so that consumers get an answer at once."""

from __future__ import annotations

import time
from collections.abc import Callable

from cuota.rails.unavailable import RailUnavailable

# After this many failures in a row the rail is not called for PAUSE_SECONDS. Then one call tries whether it answers again.
MOST_FAILURES = 5
PAUSE_SECONDS = 10.0


class Breaker:
    """Counts one rail's failures in a row, in this process. A decline is an answer and not a failure."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are refused now."""
        return self._failures >= MOST_FAILURES and self._clock() < self._open_until

    def require_closed(self) -> None:
        """Raise RailUnavailable while the rail is not called. Otherwise the call may be sent.

        After the pause, one call is sent; until it has answered, the others are still refused.
        """
        if self.is_open:
            raise RailUnavailable(
                f"the card rail {self._name} failed {self._failures} times in a row; it is tried again soon"
            )
        if self._failures >= MOST_FAILURES:
            self._open_until = self._clock() + PAUSE_SECONDS

    def answered(self) -> None:
        """Note that the rail answered."""
        self._failures = 0

    def failed(self) -> None:
        """Note that the rail did not answer."""
        self._failures += 1
        self._open_until = self._clock() + PAUSE_SECONDS
