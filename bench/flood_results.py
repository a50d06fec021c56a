"""The results of a flood (bench/flood.py): how many requests were answered, refused and late, by merchant, operation and second."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench import flood

KINDS = tuple(name for name, _ in flood.MIX)


@dataclass
class Count:
    """The results of some requests."""

    offered: int = 0
    refused: int = 0
    bare: int = 0
    late: int = 0
    other: int = 0
    latencies: list[float] = field(default_factory=list)

    @property
    def good(self) -> int:
        return len(self.latencies)

    @property
    def kept(self) -> float:
        return self.good / max(self.offered, 1)

    def percentile(self, percent: int) -> float:
        ordered = sorted(self.latencies)
        return ordered[len(ordered) * percent // 100] if ordered else float("nan")


@dataclass(frozen=True)
class Came:
    """The results of one flood."""

    found: dict[str, Any]

    def count(
        self, *, sender: range | None = None, kinds: tuple[str, ...] = KINDS, seconds: range | None = None
    ) -> Count:
        total = Count()
        for by, name, second, tally in self.found["tallies"]:
            if name in kinds and (sender is None or by in sender) and (seconds is None or second in seconds):
                for what in ("offered", "refused", "bare", "late", "other"):
                    setattr(total, what, getattr(total, what) + tally[what])
                total.latencies += tally["latencies"]
        return total

    @property
    def generator(self) -> str:
        said = f"{self.found['late_ms']:.0f} ms late, {self.found['cpu']:.0%} of a core"
        return f"{said}: **it did not keep its schedule**" if self.found["late_ms"] > 20 else said
