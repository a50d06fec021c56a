"""`python -m bench.capacity`: computes machines, database size and price for 1, 100 and 10,000 orders a second.

Multiplies measured values: the CPU time and bytes of an order's whole life (bench/lifetime.json, from
bench.lifetime), and the CPU time of a request under load for peak hours (the cost table of bench/RESULTS.md, from
bench). Writes the tables into docs/capacity.md, between its two marks.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.lifetime import BY_REAL_CLOCK, BY_SERVICE_CLOCK

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "capacity.md"
START, END = "<!-- made by python -m bench.capacity -->", "<!-- end -->"

RATES = (1, 100, 10_000)
SECONDS_A_MONTH = 86_400 * 365 / 12
DELETED_AFTER = BY_SERVICE_CLOCK | BY_REAL_CLOCK


@dataclass(frozen=True)
class Assumed:
    """The assumptions that are not measured here. To try others, change them and run the module again."""

    core_hour: float = 0.04
    gb_month: float = 0.10
    busy: float = 0.5
    peak: float = 3.0
    cores_web: int = 4
    cores_database: int = 16
    terabytes_database: int = 16
    database_copies: int = 2
    months_kept: int = 24
    free: float = 0.25
    two_machines_at_least: int = 2

    def rows(self) -> list[tuple[str, str]]:
        return [
            ("price of a core-hour, with its memory", f"{self.core_hour:.2f} USD"),
            ("price of a GB-month of durable, fast disk", f"{self.gb_month:.2f} USD"),
            ("share of a core that is used at the peak", f"{self.busy:.0%}"),
            ("orders in the peak second, as a multiple of the month's mean", f"{self.peak:.0f}"),
            ("cores of a web machine", str(self.cores_web)),
            ("cores of a database machine, at most", str(self.cores_database)),
            ("data of a database machine, at most", f"{self.terabytes_database} TB"),
            ("copies of the data: the primary and its standbys", str(self.database_copies)),
            ("months of orders in the database", str(self.months_kept)),
            ("free space in tables and indexes, which new rows use again, in addition", f"{self.free:.0%}"),
            ("web machines, at least", str(self.two_machines_at_least)),
        ]


@dataclass(frozen=True)
class OrderCost:
    """The cost of one order in its whole life: CPU seconds and bytes. `kept` is what is left when all old rows are deleted;
    `aging` are the other bytes, with the months after which they are deleted."""

    web: float
    database: float
    bytes: int
    kept: int
    aging: tuple[tuple[int, int], ...]
    wal: int

    def stored(self, months: int) -> int:
        """Return the bytes that one order a month takes after this many months, with orders of every age."""
        return self.kept * months + sum(size * min(age, months) for size, age in self.aging)


@dataclass(frozen=True)
class Need:
    """The resources for this many orders a second, as a mean over the month."""

    rate: int
    web_cores: float
    database_cores: float
    web_machines: int
    shards: int
    terabytes: float
    wal_megabytes: float
    dollars: float


def order_of(life: dict[str, Any]) -> OrderCost:
    steps, kept = life["steps"].values(), life["bytes_after_retention"]
    return OrderCost(
        sum(step["web_ms"] for step in steps) / 1000,
        sum(step["postgres_ms"] for step in steps) / 1000,
        sum(life["bytes"].values()),
        sum(kept.values()),
        tuple((size, DELETED_AFTER[name]) for name, size in life["bytes"].items() if name in DELETED_AFTER),
        life["wal_bytes"] + life["wal_bytes_of_retention"],
    )


def need(rate: int, order: OrderCost, given: Assumed) -> Need:
    """Return the resources for this many orders a second. The cores are for the peak, with only a share of each core used."""
    web = rate * given.peak * order.web / given.busy
    database = rate * given.peak * order.database / given.busy
    machines = max(given.two_machines_at_least, math.ceil(web / given.cores_web))
    size = rate * SECONDS_A_MONTH * order.stored(given.months_kept) * (1 + given.free) / 1e9
    shards = max(
        1, math.ceil(database / given.cores_database), math.ceil(size / 1000 / given.terabytes_database)
    )
    # For each copy of each shard: the smallest database machine that is large enough, with at least two cores.
    each = max(2, math.ceil(database / shards))
    cores = machines * given.cores_web + shards * given.database_copies * each
    dollars = cores * 24 * 365 / 12 * given.core_hour + size * given.database_copies * given.gb_month
    wal = rate * given.peak * order.wal / 1e6
    return Need(rate, web, database, machines, shards, size / 1000, wal, dollars)


def costs(results: str) -> list[tuple[str, float, float]]:
    """Return the CPU milliseconds of each operation, in the web process and in PostgreSQL (32 clients, one worker)."""
    row = re.compile(r"^\| (\w[\w ]*?) \| 32 \| 1 \| ([\d.]+) \| ([\d.]+) \| *[\d.]* *\|$", re.MULTILINE)
    return [(work, float(web), float(database)) for work, web, database in row.findall(results)]


def tables(life: dict[str, Any], results: str, given: Assumed) -> str:
    order = order_of(life)
    lines = [
        f"Measured {life['measured']} on {'; '.join(life['machine'])}: {life['orders']} orders, each through its whole life. Milliseconds are CPU time of one core.",
        "",
        "| step of one order's life | web ms | PostgreSQL ms |",
        "|---|--:|--:|",
        *(f"| {name} | {s['web_ms']:.1f} | {s['postgres_ms']:.1f} |" for name, s in life["steps"].items()),
        f"| **total** | **{1000 * order.web:.1f}** | **{1000 * order.database:.1f}** |",
        "",
        "| one call under load (32 clients, [RESULTS.md](../bench/RESULTS.md)) | web ms | PostgreSQL ms |",
        "|---|--:|--:|",
        *(f"| {work} | {web:.2f} | {database:.2f} |" for work, web, database in costs(results)),
        "",
        (
            f"Bytes of one order with its indexes, after VACUUM FULL (`pg_total_relation_size`): **{order.bytes:,}** after the six weeks, "
            f"**{order.kept:,}** after all retention periods. WAL, without autovacuum: **{order.wal:,}**, "
            f"of it {life['wal_bytes_of_retention']:,} to delete the old rows."
        ),
        "",
        "| table | bytes after six weeks | after retention |",
        "|---|--:|--:|",
        *(
            f"| {name} | {size:,} | {life['bytes_after_retention'].get(name, 0):,} |"
            for name, size in life["bytes"].items()
        ),
        "",
        "| assumed | |",
        "|---|--:|",
        *(f"| {name} | {value} |" for name, value in given.rows()),
        "",
        "| orders/s, mean | web cores | database cores | web machines | shards | data | WAL at the peak | price a month | price of 1,000 orders |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(_row(need(rate, order, given)) for rate in RATES),
    ]
    return "\n".join(lines)


def _row(n: Need) -> str:
    thousand = n.dollars / (n.rate * SECONDS_A_MONTH) * 1000
    return (
        f"| {n.rate:,} | {n.web_cores:,.1f} | {n.database_cores:,.1f} | {n.web_machines:,} | {n.shards:,} "
        f"| {n.terabytes:,.1f} TB | {n.wal_megabytes:,.1f} MB/s | {n.dollars:,.0f} USD | {thousand:.3f} USD |"
    )


def main() -> None:
    made = tables(
        json.loads((HERE / "lifetime.json").read_text()), (HERE / "RESULTS.md").read_text(), Assumed()
    )
    before, _, rest = PAGE.read_text().partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n\n{made}\n\n{END}{after}")
    print(made)


if __name__ == "__main__":
    main()
