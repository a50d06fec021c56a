"""Measures the service and its limits in turn, in several rounds, and summarizes the rounds.

The speed of a machine changes within minutes, above all if other virtual machines share its processor. So each ratio
compares numbers that were measured within the same seconds, and the table has the median of the rounds.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

import psutil

from bench import service, work
from bench.client import Measured
from bench.measure import BESIDE, COMPARED_WITH, BenchRun, limits, on_service
from bench.report import Cost, ReportRow

Shape = tuple[str, int, int]


@dataclass
class Rounds:
    """What all rounds measured, by operation, workers and clients."""

    found: dict[Shape, list[Measured]] = field(default_factory=lambda: defaultdict(list))
    spent: dict[Shape, list[Cost]] = field(default_factory=lambda: defaultdict(list))
    limits: dict[Shape, list[dict[str, float]]] = field(default_factory=lambda: defaultdict(list))

    def measure(
        self, bench: BenchRun, workers: int, group: tuple[int, ...], web: list[psutil.Process], bare_port: int
    ) -> None:
        """Measure one round: each operation with every number of clients of the group, and its limits."""
        for name in work.WORKS:
            # Otherwise the background work of the previous operation would slow this one.
            asyncio.run(service.events_published(bench.where))
            for clients in group:
                self._measure(bench, name, workers, clients, web, bare_port)

    def _measure(
        self,
        bench: BenchRun,
        name: str,
        workers: int,
        clients: int,
        web: list[psutil.Process],
        bare_port: int,
    ) -> None:
        shape = name, workers, clients
        # The round trips do not depend on the speed of the machine: the first round counts them.
        counting = clients == 1 and not self.spent[shape]
        measured, cost = on_service(bench, name, workers, clients, web, counting=counting)
        self.found[shape].append(measured)
        self.spent[shape].append(cost)
        if (workers, clients) in BESIDE:
            self.limits[shape].append(limits(bench, name, workers, clients, bare_port))

    def rows(self) -> list[ReportRow]:
        """Return one row for each shape and limit, sorted as they were measured."""
        return [row for shape in self.found for row in self._rows(shape)]

    def _rows(self, shape: Shape) -> Iterator[ReportRow]:
        name, workers, clients = shape
        beside = self.limits.get(shape) or self.limits[name, workers, COMPARED_WITH]
        for limit in beside[0]:
            yield compared(name, workers, clients, self.found[shape], limit, [each[limit] for each in beside])

    def costs(self) -> list[Cost]:
        """Return the median cost of each shape."""
        return [_median_cost(costs) for costs in self.spent.values()]


def compared(
    name: str, workers: int, clients: int, found: list[Measured], limit: str, beside: list[float]
) -> ReportRow:
    """Return the row that compares the rounds of an operation with the rounds of one limit."""
    ratios = [each.rps / rps for each, rps in zip(found, beside, strict=True)]
    return ReportRow(
        name,
        clients,
        workers,
        median(each.rps for each in found),
        median(each.p50_ms for each in found),
        median(each.p99_ms for each in found),
        limit,
        median(beside),
        median(ratios),
        min(ratios),
        max(ratios),
    )


def _median_cost(costs: list[Cost]) -> Cost:
    first = costs[0]
    web, postgres = median(cost.web for cost in costs), median(cost.postgres for cost in costs)
    return Cost(first.work, first.clients, first.workers, web, postgres, first.round_trips)
