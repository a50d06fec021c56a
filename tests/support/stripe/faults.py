"""Network faults between a client and the stand-in, and idempotency keys, which Stripe keeps for a day."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from support.stripe.upstream import Pairs

Json = dict[str, Any]
Answer = tuple[int, Json]
# The request is lost; or the answer is lost after Stripe acted; or the request arrives twice.
Fault = Literal["request", "answer", "twice"] | None
KEPT_HOURS = 24.0


class Faults:
    """Decides for each API request whether the request or its answer is lost. Each answer is delayed by `delay`
    seconds."""

    def __init__(self) -> None:
        self.plan: Callable[[str], Fault] = lambda _method: None
        self.delay = 0.0
        self.hits = 0

    def next(self, method: str) -> Fault:
        """Return the fault of the next request with this HTTP method."""
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
    """An answer that Stripe repeats for the same idempotency key, and marks with a header."""


class IdempotencyKeys:
    """Stripe's idempotency keys (docs.stripe.com/api/idempotent_requests). localstripe has none.

    The first answer is repeated for 24 hours, even if it is an error; then the key is forgotten. A request with the
    same key is an error if its parameters differ, or if the first request still runs.
    """

    def __init__(self) -> None:
        self.hours = 0.0
        self._answers: dict[str, tuple[float, Pairs, Answer]] = {}
        self._running: set[str] = set()

    async def once(self, key: str | None, pairs: Pairs, act: Callable[[], Awaitable[Answer]]) -> Answer:
        """Perform the request, or repeat its first answer."""
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
