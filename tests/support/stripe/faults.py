"""What goes wrong between a client and the stand-in, and the idempotency keys that Stripe keeps for a day."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from support.stripe.upstream import Pairs

Json = dict[str, Any]
Answer = tuple[int, Json]
# The request is lost; it acts and its answer is lost; or it arrives twice.
Fault = Literal["request", "answer", "twice"] | None
KEPT_HOURS = 24.0


class Faults:
    """Decides for each API request whether it or its answer is lost. `delay` is waited before each answer."""

    def __init__(self) -> None:
        self.plan: Callable[[str], Fault] = lambda _method: None
        self.delay = 0.0
        self.hits = 0

    def next(self, method: str) -> Fault:
        """Return what happens to a request with this HTTP method."""
        fault = self.plan(method)
        self.hits += fault is not None
        return fault

    @contextmanager
    def planned(self, plan: Callable[[str], Fault]) -> Iterator[None]:
        """Follow a plan for a while."""
        before, self.plan = self.plan, plan
        try:
            yield
        finally:
            self.plan = before


class Replayed(dict[str, Any]):
    """An answer that Stripe repeats under its idempotency key, and marks with a header."""


class IdempotencyKeys:
    """Stripe's idempotency keys (docs.stripe.com/api/idempotent_requests). localstripe has none.

    The first answer is repeated for 24 hours, also if it is an error; then the key is forgotten. Other parameters under the
    same key are an error, and so is a second request while the first one runs.
    """

    def __init__(self) -> None:
        self.hours = 0.0
        self._answers: dict[str, tuple[float, Pairs, Answer]] = {}
        self._running: set[str] = set()

    async def once(self, key: str | None, pairs: Pairs, act: Callable[[], Awaitable[Answer]]) -> Answer:
        """Act, or repeat the first answer."""
        if key is None:
            return await act()
        if key in self._running:
            return 409, {"error": {"type": "idempotency_error", "code": "idempotency_key_in_use"}}
        kept = self._answers.get(key)
        if kept is not None and self.hours - kept[0] < KEPT_HOURS:
            if list(kept[1]) != list(pairs):
                return 400, {"error": {"type": "idempotency_error", "message": "other parameters"}}
            return kept[2][0], Replayed(kept[2][1])
        self._running.add(key)
        try:
            answer = await act()
        finally:
            self._running.discard(key)
        self._answers[key] = (self.hours, pairs, answer)
        return answer
