"""What this process has answered, by group of routes: read from the metrics, which count every request anyway."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

from cuota.core.operator.traffic import BUCKETS, Traffic, TrafficTotals
from cuota.web.app import ROUTES
from cuota.web.server.metrics import LATENCY, REFUSALS, REQUESTS, samples
from cuota.web.server.route import OTHER

_GROUPS = {row.path: row.area.group for row in ROUTES}


def counted() -> TrafficTotals:
    """Return what this process alone has counted since its start."""
    errors: dict[str, int] = defaultdict(int)
    below: dict[str, list[int]] = defaultdict(list)
    for sample in samples(REQUESTS, "_total"):
        if sample.labels["status"] >= "500":
            errors[sample.labels["route"]] += int(sample.value)
    for sample in samples(LATENCY, "_bucket"):
        below[sample.labels["route"]].append(int(sample.value))
    groups: dict[str, Traffic] = defaultdict(Traffic)
    for route, counts in below.items():
        # Each bucket of the metrics includes the counts of the buckets before it; the last includes all.
        buckets = tuple(after - before for before, after in pairwise([0, *counts]))
        assert len(buckets) == BUCKETS
        group = _GROUPS.get(route, OTHER)
        groups[group] = groups[group].plus(Traffic(counts[-1], errors[route], buckets))
    return TrafficTotals(dict(groups), int(sum(sample.value for sample in samples(REFUSALS, "_total"))))
