"""How many requests were answered, how fast, and how many by a server error. A duration is known only as one of a few buckets."""

from __future__ import annotations

import math
from dataclasses import dataclass

# The upper ends of the buckets, in seconds. One more bucket holds what took longer. Prometheus gets the same buckets.
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
BUCKETS = len(BOUNDS) + 1


@dataclass(frozen=True, slots=True)
class Traffic:
    """The answers to some requests. `errors` have a status of 500 or more. `buckets` counts the answers by their duration."""

    answers: int = 0
    errors: int = 0
    buckets: tuple[int, ...] = (0,) * BUCKETS

    def plus(self, other: Traffic) -> Traffic:
        """Return both together."""
        buckets = tuple(mine + its for mine, its in zip(self.buckets, other.buckets, strict=True))
        return Traffic(self.answers + other.answers, self.errors + other.errors, buckets)

    def minus(self, earlier: Traffic) -> Traffic:
        """Return what came after `earlier`, which is a part of this."""
        buckets = tuple(mine - its for mine, its in zip(self.buckets, earlier.buckets, strict=True))
        return Traffic(self.answers - earlier.answers, self.errors - earlier.errors, buckets)

    @property
    def error_share(self) -> float:
        """The share of server errors, from 0 to 1."""
        return self.errors / self.answers if self.answers else 0.0

    def within(self, share: float) -> float | None:
        """Return the seconds within which this share of the requests was answered: the upper end of a bucket.

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
    """What one process has counted since its start: by group of routes, and requests that were refused for want of a place."""

    groups: dict[str, Traffic]
    refused: int = 0

    def since(self, earlier: TrafficTotals) -> TrafficTotals:
        """Return what came after `earlier`. Groups without a request are left out."""
        groups = {
            name: new
            for name, traffic in self.groups.items()
            if (new := traffic.minus(earlier.groups.get(name, Traffic()))).answers
        }
        return TrafficTotals(groups, self.refused - earlier.refused)


NOTHING = TrafficTotals({})
