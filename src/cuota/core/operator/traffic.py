"""The number of requests, their durations, and the number of server errors.

A duration is known only as one of a few buckets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# The upper limits of the buckets, in seconds. One more bucket counts longer durations. Prometheus gets the same buckets.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
BUCKETS = len(BOUNDS) + 1


@dataclass(frozen=True, slots=True)
class Traffic:
    """The responses to some requests.

    `errors` counts those with a status of 500 or more. `buckets` counts the responses by duration.
    """

    answers: int = 0
    errors: int = 0
    buckets: tuple[int, ...] = (0,) * BUCKETS

    def plus(self, other: Traffic) -> Traffic:
        """Return the sum of both."""
        buckets = tuple(mine + its for mine, its in zip(self.buckets, other.buckets, strict=True))
        return Traffic(self.answers + other.answers, self.errors + other.errors, buckets)

    def minus(self, earlier: Traffic) -> Traffic:
        """Return this traffic without `earlier`, which is a part of it."""
        buckets = tuple(mine - its for mine, its in zip(self.buckets, earlier.buckets, strict=True))
        return Traffic(self.answers - earlier.answers, self.errors - earlier.errors, buckets)

    @property
    def error_share(self) -> float:
        """The share of server errors, from 0 to 1."""
        return self.errors / self.answers if self.answers else 0.0

    def within(self, share: float) -> float | None:
        """Return the duration within which this share of the requests was answered: the upper limit of a bucket, in seconds.

        Infinite if that is the last bucket, and None if there were no requests.
        """
        total, seen = sum(self.buckets), 0
        if not total:
            return None
        needed = math.ceil(share * total)
        for bound, count in zip((*BOUNDS, math.inf), self.buckets, strict=True):
            seen += count
            if seen >= needed:
                return bound
        return math.inf


@dataclass(frozen=True, slots=True)
class TrafficTotals:
    """The counts of one process since its start, by group of routes, and the requests that were refused because of overload."""

    groups: dict[str, Traffic]
    refused: int = 0

    def since(self, earlier: TrafficTotals) -> TrafficTotals:
        """Return these counts without the counts of `earlier`. Groups without a request are left out."""
        groups = {
            name: new
            for name, traffic in self.groups.items()
            if (new := traffic.minus(earlier.groups.get(name, Traffic()))).answers
        }
        return TrafficTotals(groups, self.refused - earlier.refused)


NOTHING = TrafficTotals({})
