"""Prometheus metrics, and `GET /metrics`, which serves them.

With several worker processes, the metrics of all of them are added up. For this the parent process has set up a folder
in which each process writes its counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from operator import itemgetter

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
    values,
)
from prometheus_client.samples import Sample
from starlette.requests import Request
from starlette.responses import Response

from cuota.core.checkout.texting import Limit
from cuota.core.operator.traffic import BOUNDS
from cuota.core.order.event import FINAL_STATUS, Event
from cuota.core.order.order import Status
from cuota.core.risk.decision import APPROVAL_CODES, DECLINE_CODES, Decision
from cuota.core.risk.review import ReviewState
from cuota.db.pool import Pool
from cuota.web.server.shared_counts import SharedCounts
from cuota.web.service import service_of

if values.ValueClass.__name__ != "MutexValue":
    # By default the library asks the system for the process id at every count, which takes half a microsecond. The process id
    # changes only when the fork server forks a worker.
    _process = [os.getpid()]
    values.MmapedDict = SharedCounts  # type: ignore[attr-defined, assignment]
    os.register_at_fork(after_in_child=lambda: _process.__setitem__(0, os.getpid()))
    values.ValueClass = values.MultiProcessValue(process_identifier=partial(itemgetter(0), _process))  # type: ignore[no-untyped-call]
REQUESTS = Counter("cuota_requests", "Requests answered", ["route", "method", "status"])
LATENCY = Histogram("cuota_request_seconds", "Time from request head to answer", ["route"], buckets=BOUNDS)
ORDERS = Counter("cuota_orders", "Orders that reached a status since the service started", ["status"])
EVENTS = Counter("cuota_events", "Events since the service started", ["type"])
DECISIONS = Counter(
    "cuota_decisions",
    "Risk decisions since the service started, by the main reason of each",
    ["outcome", "reason"],
)
# Create the series of all statuses, reasons and states at the start, for the reason given at _CODES_REFUSED.
_ORDERS = {status: ORDERS.labels(status) for status in Status}
OTHER_REASON = "other"
_REASONS = {"approved": APPROVAL_CODES, "declined": DECLINE_CODES, "referred": DECLINE_CODES}
_DECISIONS = {
    (outcome, reason): DECISIONS.labels(outcome, reason)
    for outcome, reasons in _REASONS.items()
    for reason in (*reasons, OTHER_REASON)
}
REVIEWS = Counter("cuota_reviews", "Reviews that ended since the service started", ["state"])
_REVIEWS = {state: REVIEWS.labels(state) for state in (*ReviewState,)[1:]}
# Every process counts the same rows, so the metric shows the highest value of all processes.
REVIEWS_WAIT = Gauge(
    "cuota_reviews_open", "Reviews that wait for a person", ["time"], multiprocess_mode="livemax"
)
REFUSALS = Counter("cuota_refused", "Requests refused before any work, because no place was free", ["why"])
REFUSED = {why: REFUSALS.labels(why) for why in ("full", "share", "creation")}
CODES = Counter("cuota_codes", "One-time codes by text since the service started", ["outcome"])
_CODES = {outcome: CODES.labels(outcome) for outcome in ("sent", "failed")}
CODES_REFUSED = Counter(
    "cuota_codes_refused",
    "One-time codes not sent since the service started, by the limit reached",
    ["limit"],
)
# Create the series of all limits at the start. An alert would miss the first rise of a series that does not exist yet.
_CODES_REFUSED = {limit.value: CODES_REFUSED.labels(limit.value) for limit in Limit}
CARD_CALLS = Counter("cuota_card_calls", "Calls to card rails since the service started", ["rail", "result"])
CARD_EVENTS = Counter(
    "cuota_card_events", "Events of card processors applied since the service started", ["rail", "kind"]
)
_LOGGED = Counter(
    "cuota_request_log", "Calls for the request log of merchants since the service started", ["outcome"]
)
LOGGED = {outcome: _LOGGED.labels(outcome) for outcome in ("written", "dropped")}
POOL = Gauge("cuota_pool_sessions", "Database sessions", ["state"], multiprocess_mode="livesum")
# The status that an order has after an event, by the event's type.
_STATUS_OF = {"order.created": Status.CREATED, **FINAL_STATUS}
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


# Looking up a counter by its labels takes as long as counting, so each lookup is cached. The caches stay small, because
# labels are routes, methods, statuses and event types.
_answered = cache(REQUESTS.labels)
_latency = cache(LATENCY.labels)
_event = cache(EVENTS.labels)


def count_request(route: str, method: str, status: int, seconds: float) -> None:
    """Count an answer. `route` is the route's path template; `seconds` is the time from request head to answer."""
    _answered(route, method, str(status)).inc()
    _latency(route).observe(seconds)


def samples(metric: Counter | Histogram, suffix: str) -> Iterator[Sample]:
    """Return what this process alone has counted: the samples of a metric whose names end in `suffix`."""
    for family in metric.collect():
        yield from (sample for sample in family.samples if sample.name.endswith(suffix))


def count(event: Event) -> None:
    """Count an event that is committed. If the event changes the order's status, count that status too."""
    _event(event.type).inc()
    status = _STATUS_OF.get(event.type)
    if status is not None:
        _ORDERS[status].inc()


def count_decision(made: Decision) -> None:
    """Count a risk decision that is committed, under the first of its reasons."""
    first = made.reasons[0] if made.reasons else ""
    known = (made.outcome, first) in _DECISIONS
    _DECISIONS[made.outcome, first if known else OTHER_REASON].inc()


def count_review(state: ReviewState) -> None:
    """Count a review that ended, and how."""
    _REVIEWS[state].inc()


def show_reviews(waiting: int, running_out: int) -> None:
    """Show how many reviews wait, and how many of them must be answered within minutes."""
    REVIEWS_WAIT.labels("waiting").set(waiting)
    REVIEWS_WAIT.labels("running_out").set(running_out)


def show_sessions(pool: Pool) -> None:
    """Show the database sessions of this process. Each worker does this, because only one of them answers Prometheus."""
    size, idle = pool.sizes()
    POOL.labels("open").set(size)
    POOL.labels("idle").set(idle)


def count_code(outcome: str) -> None:
    """Count a one-time code. `outcome` is `sent`, `failed`, or the name of the limit that refused the code."""
    (_CODES.get(outcome) or _CODES_REFUSED[outcome]).inc()


def count_card_call(rail: str, result: str) -> None:
    """Count a call to a card rail. `result` is `answered`, `failed`, or `refused` by the open circuit breaker."""
    CARD_CALLS.labels(rail, result).inc()


def count_card_event(rail: str, kind: str) -> None:
    """Count an event of a card processor that was applied."""
    CARD_EVENTS.labels(rail, kind).inc()


def count_logged(outcome: str, calls: int = 1) -> None:
    """Count calls that the request log has `written`, or has `dropped` because the database was too slow."""
    LOGGED[outcome].inc(calls)


class Sparing:
    """Limits the CPU time of `make`, an expensive function that anybody may trigger.

    In each second, `make` may use the fraction `share` of the process's time (0.1 is a tenth). When that time is used up,
    calls return the last result. `spent` is a clock of CPU seconds; `now` is a clock of elapsed seconds that never goes
    backward.
    """

    def __init__(
        self,
        make: Callable[[], bytes],
        share: float = 0.1,
        *,
        spent: Callable[[], float] = time.thread_time,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make, self._share, self._spent, self._now = make, share, spent, now
        self._made, self._second_ends, self._left = b"", 0.0, 0.0

    def __call__(self) -> bytes:
        """Return a new result, or the last one if the CPU time of this second is used up."""
        if (now := self._now()) >= self._second_ends:
            self._second_ends, self._left = now + 1, self._share
        if self._left > 0:
            began = self._spent()
            self._made = self._make()
            self._left -= self._spent() - began
        return self._made


def _added_up() -> bytes:
    if values.ValueClass.__name__ == "MutexValue":
        return generate_latest()
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


# Rendering the metrics blocks the event loop for milliseconds. The route is always admitted and needs no token, so its
# CPU time must be limited.
_sparingly = Sparing(_added_up)


async def metrics(request: Request) -> Response:
    """`GET /metrics`: all metrics, in Prometheus's text format."""
    show_sessions(service_of(request).context.pool)
    return Response(_sparingly(), headers={"Content-Type": CONTENT_TYPE})
